"""Tests targets from files and settings, with their credentials."""

import json
import os
from pathlib import Path

import pytest

from barnabas.telemetry.collect.discovery import Discovery, NamedTargets, discovery, resolve
from barnabas.telemetry.collect.file_targets import (
    FileTargets,
    Found,
    TargetsError,
    parse_targets,
)
from barnabas.telemetry.collect.scrape_settings import (
    ScrapeSettings,
    ScrapeSettingsError,
    parse,
    read,
)
from barnabas.telemetry.collect.targets import Access, EndpointError

YAML = """
- targets: [node-1, "node-2:9500"]
  labels: {rack: r7, unit: 4, __scheme__: https, __metrics_path__: /gpu, __meta_x: y}
- targets: ["[::1]:9400"]
"""
SETTINGS = """
files: [more.yml]
kubernetes: {selector: app=dcgm, namespace: gpu, api: "http://api:1", port: 9401, refresh: 5}
scrape:
  - targets: ["*.lab:9443", lab-2]
    scheme: https
    metrics_path: /gpu
    authorization: {credentials_file: token}
    tls_config: {ca_file: ca.pem, cert_file: c.pem, key_file: c.key, server_name: lab,
                 insecure_skip_verify: true}
  - targets: ["*"]
    basic_auth: {username: me, password: s3cret}
"""


def test_a_file_names_targets_and_labels() -> None:
    found = parse_targets(YAML, is_json=False)
    assert [each.address for each in found] == ["node-1", "node-2:9500", "[::1]:9400"]
    assert found[0].labels == {"rack": "r7", "unit": "4"}
    assert (found[0].scheme, found[0].path) == ("https", "/gpu")
    assert [resolve(each, ()).url for each in found] == [
        "https://node-1:9400/gpu",
        "https://node-2:9500/gpu",
        "http://[::1]:9400/metrics",
    ]
    groups = [{"targets": ["a"], "labels": {"x": "y"}}]
    assert parse_targets(json.dumps(groups), is_json=True) == [
        Found(address="a", labels={"x": "y"})
    ]
    assert parse_targets("", is_json=False) == []


@pytest.mark.parametrize(
    "text",
    ["{", "a: 1", "- 1", "- {targets: a}", "- {targets: [1]}", "- {targets: [a], labels: 1}",
     "- {targets: [a], labels: {a-b: c}}", "- {targets: [a], labels: {a: [c]}}"],
)  # fmt: skip
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(TargetsError):
        parse_targets(text, is_json=False)


def rewrite(path: Path, text: str) -> None:
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "targets.json"
    path.write_text('[{"targets": ["a"]}]')
    said: list[str] = []
    source = FileTargets(path, said.append)
    found = Discovery([NamedTargets(["a", "z"]), source], (), said.append)
    before = found.targets()
    assert [each.host for each in before] == ["a", "z"]
    assert found.targets() is before
    rewrite(path, '[{"targets": ["b", "h:99999"]}]')
    assert [each.host for each in found.targets()] == ["a", "z", "b"]
    assert said == [f"{path} names 2 targets now", said[1]]
    assert "'h:99999' is not an address" in said[1]
    rewrite(path, '[{"targets": ["c"')
    path_gone = [len(found.targets()), len(found.targets())]
    path.unlink()
    path_gone += [len(found.targets()), len(found.targets())]
    assert path_gone == [3, 3, 3, 3]
    assert ["stay as they were" in each for each in said[2:]] == [True, True]
    rewrite(path, '[{"targets": []}]')
    assert [each.host for each in found.targets()] == ["a", "z"]


def test_a_file_that_is_not_there_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TargetsError, match="No such file"):
        FileTargets(tmp_path / "none.yml", lambda _: None)


def test_settings_say_how_to_get_in(tmp_path: Path) -> None:
    path = tmp_path / "settings.yml"
    path.write_text(SETTINGS)
    found = read(path)
    assert found.files == (tmp_path / "more.yml",)
    assert found.pods is not None
    assert (found.pods.selector, found.pods.port, found.pods.refresh_s) == ("app=dcgm", 9401, 5.0)
    lab = resolve(Found(address="gpu-1.lab:9443"), found.rules)
    assert lab.url == "https://gpu-1.lab:9443/gpu"
    assert lab.access == Access(
        token_file=str(tmp_path / "token"),
        ca_file=str(tmp_path / "ca.pem"),
        cert_file=str(tmp_path / "c.pem"),
        key_file=str(tmp_path / "c.key"),
        server_name="lab",
        insecure=True,
    )
    other = resolve(Found(address="node-1"), found.rules)
    assert (other.url, other.access) == (
        "http://node-1:9400/metrics",
        Access(username="me", password="s3cret"),
    )
    own = resolve(Found(address="you:pw@lab-2"), found.rules)
    assert (own.access.username, own.access.token_file) == ("you", "")
    assert own.access.server_name == "lab"


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        ([], "must be a mapping"),
        ({"scrap": []}, "did you mean scrape"),
        ({"scrape": [{"scheme": "http"}]}, "names no targets"),
        ({"scrape": [{"targets": ["a"], "scheme": "ftp"}]}, "write http or https"),
        ({"scrape": [{"targets": ["a"], "basic_auth": {"password": "p"}}]}, "needs a username"),
        ({"scrape": [{"targets": ["a"], "tls_config": {"insecure_skip_verify": 1}}]}, "true or"),
        ({"scrape": [{"targets": ["a"], "authorization": {"type": "Digest"}}]}, "only be Bearer"),
        ({"kubernetes": {"namespace": "x"}}, "needs a selector"),
        ({"kubernetes": {"selector": "x", "port": 70_000}}, "below 65536"),
        ({"files": "a"}, "must be a list"),
    ],
)
def test_other_settings_say_what_to_change(content: object, advice: str) -> None:
    with pytest.raises(ScrapeSettingsError, match=advice):
        parse(content, Path())


def test_a_secret_of_the_wrong_type_is_not_repeated() -> None:
    rule = {"targets": ["a"], "basic_auth": {"username": "u", "password": 12345}}
    with pytest.raises(ScrapeSettingsError) as caught:
        parse({"scrape": [rule]}, Path())
    assert "12345" not in str(caught.value)


def test_a_wrong_address_of_the_command_line_is_an_error_at_once() -> None:
    with pytest.raises(EndpointError, match="Port out of range"):
        discovery(
            ["h:99999"],
            [],
            ScrapeSettings(),
            environment=os.environ,
            tell=lambda _: None,
            is_stopping=lambda: False,
        )
