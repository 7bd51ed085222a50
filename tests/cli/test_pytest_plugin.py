"""Tests the fixtures as a user sees them: in a separate pytest run, with warnings as errors."""

import subprocess
import sys
from pathlib import Path

import pytest

USES = """
import pytest
from barnabas.client import Consumer, Producer

seen = []


def roundtrip(bootstrap, topic):
    with Producer(bootstrap) as producer:
        producer.send(topic, b"hello")
    with Consumer(bootstrap, group="g", start="earliest") as consumer:
        consumer.subscribe([topic])
        return consumer.poll(30).value


def test_a_broker(barnabas):
    seen.append(barnabas.data)
    assert roundtrip(barnabas.bootstrap, "t") == b"hello"


@pytest.mark.barnabas({"broker.auto_create_topics": False})
def test_another_broker(barnabas):
    assert barnabas.data not in seen
    assert not barnabas.settings.broker.auto_create_topics
"""
CLUSTER = """
def test_a_cluster(barnabas_cluster):
    assert len(barnabas_cluster.nodes) == 3


def test_the_same_cluster(barnabas_cluster):
    barnabas_cluster.wait_healthy()
"""
WRONG = """
import pytest


@pytest.mark.barnabas("interval")
def test_it(barnabas):
    pass
"""


def run(folder: Path, content: str, *options: str) -> tuple[int, str]:
    (folder / "test_uses.py").write_text(content)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "--strict-markers", *options]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_each_test_has_a_broker_of_its_own(tmp_path: Path) -> None:
    code, said = run(tmp_path, USES)
    assert code == 0, said
    assert "2 passed" in said


def test_tests_share_a_cluster(tmp_path: Path) -> None:
    code, said = run(tmp_path, CLUSTER)
    assert code == 0, said
    assert "2 passed" in said


def test_invalid_settings_are_reported(tmp_path: Path) -> None:
    code, said = run(tmp_path, WRONG)
    assert code == pytest.ExitCode.TESTS_FAILED, said
    assert "the marker barnabas takes one dictionary of settings" in said


def test_the_plugin_can_be_left_out_and_loads_no_broker(tmp_path: Path) -> None:
    code, said = run(tmp_path, USES, "-p", "no:barnabas", "--collect-only")
    assert code != 0
    assert "'barnabas' not found in `markers`" in said
    light = "import sys, barnabas.testing.pytest_plugin; print('barnabas.app' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", light], capture_output=True, check=True)
    assert found.stdout.strip() == b"False"
