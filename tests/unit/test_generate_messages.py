"""Tests the generator of message classes, with an invented definition and the vendored ones."""

import json
from pathlib import Path

import pytest

from tools.generate_messages import DEFINITIONS, OUTPUTS, PROTOCOL, generate, load, write

DEFINITION = """
// Prose that must not cross over.
{
  "apiKey": 7, "type": "request", "name": "PingRequest", "listeners": ["broker"],
  "validVersions": "1-3", "flexibleVersions": "2+",
  "fields": [
    { "name": "ISRNodes", "type": "[]int32", "versions": "0+", "about": "prose" },
    // more prose
    { "name": "From", "type": "string", "versions": "2+", "nullableVersions": "2+",
      "default": "null", "ignorable": true, "about": "prose" },
    { "name": "Peers", "type": "[]Peer", "versions": "3+", "taggedVersions": "3+", "tag": 0,
      "fields": [ { "name": "KRaftId", "type": "int32", "versions": "3+", "default": "0x10" } ] }
  ]
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "PingRequest.json").write_text(DEFINITION)
    response = {"apiKey": 7, "type": "response", "name": "PingResponse", "validVersions": "1-3"}
    peers = {"name": "Peers", "type": "[]Peer", "versions": "0+", "fields": []}
    response |= {"flexibleVersions": "2+", "fields": [peers]}
    (tmp_path / "PingResponse.json").write_text(json.dumps(response))
    return tmp_path


def test_facts_cross_over_and_prose_does_not(folder: Path) -> None:
    files = generate(load(folder))
    assert sorted(files) == ["__init__.py", "index_tables.py", "ping.py"]
    source = files["ping.py"]
    assert 'isr_nodes: list[int] = field("[]int32 0+")' in source
    facts = "string 2+ nullable=2+ default=null ignorable"
    assert f'from_: str | None = field("{facts}")' in source
    facts = "[]PingRequestPeer 3+ tag=0 tagged=3+"
    assert f'peers: list[PingRequestPeer] = field("{facts}")' in source
    assert 'kraft_id: int = field("int32 3+ default=16")' in source
    assert '"""Ping request, versions 1-3, flexible from 2."""' in source
    assert "prose" not in source.lower()


def test_structs_with_one_name_take_the_name_of_their_message(folder: Path) -> None:
    source = generate(load(folder))["ping.py"]
    assert "class PingRequestPeer(Message)" in source
    assert "class PingResponsePeer(Message)" in source


@pytest.mark.parametrize("source", OUTPUTS)
def test_the_checked_in_modules_are_current(tmp_path: Path, source: str) -> None:
    wanted = generate(load(DEFINITIONS / source))
    write(tmp_path, wanted, check=False)
    assert write(PROTOCOL / OUTPUTS[source], wanted, check=True) == []
    assert write(tmp_path, wanted, check=True) == []


def test_a_check_names_what_differs_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "removed.py").write_text("")
    wanted = {"added.py": "x = 1\n"}
    assert write(tmp_path, wanted, check=True) == ["added.py", "removed.py"]
    assert [path.name for path in tmp_path.iterdir()] == ["removed.py"]
    write(tmp_path, wanted, check=False)
    assert [path.name for path in tmp_path.iterdir()] == ["added.py"]


def test_every_definition_has_its_licence() -> None:
    ours = set(DEFINITIONS.glob("coordinators/Share*.json"))  # see the README of the definitions
    texts = [path.read_text() for path in DEFINITIONS.glob("*/*.json") if path not in ours]
    assert texts
    assert all("Licensed to the Apache Software Foundation (ASF)" in text for text in texts)
