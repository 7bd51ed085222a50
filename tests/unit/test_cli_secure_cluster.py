"""What `barnabas cluster up --secure` shows to people can be copied, and then works."""

import json
import pathlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography", reason="needs pip install 'barnabas[cert]'")

from barnabas.admin.client_files import read_client_file
from barnabas.cli.cluster.ensemble import Ensemble
from barnabas.cli.cluster.local_cluster import LocalCluster, new_cluster
from barnabas.cli.cluster.secure_cluster import client_properties, secure
from barnabas.cli.cluster.up_command import _show
from barnabas.spark.client_properties import client_properties as spark_properties


@pytest.fixture
def cluster(tmp_path: Path) -> LocalCluster:
    made = replace(new_cluster(tmp_path, 3, None), is_secure=True)
    secure(made, None)
    return made


@pytest.fixture
def shown(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> str:
    _show(cluster, Ensemble(cluster, cluster.brokers), None, as_json=False)
    return capsys.readouterr().out


def words_after(shown: str, beginning: str) -> list[str]:
    """Return the words of the only line that begins so."""
    (line,) = [each for each in shown.splitlines() if each.strip().startswith(beginning)]
    return line.split()


def test_files_for_librdkafka_and_java(cluster: LocalCluster, shown: str) -> None:
    """`export`, kcat and Kafka's tools name files; librdkafka's and Java's say the same."""
    _, variable, *_ = words_after(shown, "export ")
    kcat = words_after(shown, "kcat ")
    tool = words_after(shown, "kafka-topics.sh ")
    assert variable == f"BARNABAS_CLIENT_CONFIG={cluster.client_file}"
    assert kcat[1:5] == ["-F", str(cluster.client_file), "-b", cluster.bootstrap]
    assert tool[1:5] == [
        "--bootstrap-server",
        cluster.bootstrap,
        "--command-config",
        str(cluster.java_file),
    ]
    expected = client_properties(cluster)
    assert read_client_file(cluster.client_file) == expected
    assert read_client_file(cluster.java_file) == expected


def test_programs_and_spark(cluster: LocalCluster, shown: str) -> None:
    """The lines of Python are run as they are."""
    expected = client_properties(cluster)
    names: dict[str, Any] = {"pathlib": pathlib}
    for beginning in ("lines = ", "properties = "):
        exec(" ".join(words_after(shown, beginning)), names)
    assert names["properties"] == expected
    options = re.search(r"options\(\*\*(\{.*\})\)", shown)
    assert options is not None
    assert cluster.bootstrap in shown
    given = eval(options[1], names)
    servers = {"kafka.bootstrap.servers": cluster.bootstrap}
    understood = spark_properties({**servers, **given})
    assert understood.items() >= expected.items()


def test_the_password_is_shown_in_json_alone(
    cluster: LocalCluster, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs need it; a terminal has a history, so people are shown the file."""
    password = client_properties(cluster)["sasl.password"]
    assert password not in shown
    _show(cluster, Ensemble(cluster, cluster.brokers), None, as_json=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["client"]["sasl.password"] == password
