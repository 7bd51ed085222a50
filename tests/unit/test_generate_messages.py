"""The generator of message classes, on a definition made up here and on the real ones."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
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


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gen", ROOT / "tools" / "generate_messages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "PingRequest.json").write_text(DEFINITION)
    response = {"apiKey": 7, "type": "response", "name": "PingResponse", "validVersions": "1-3"}
    peers = {"name": "Peers", "type": "[]Peer", "versions": "0+", "fields": []}
    response |= {"flexibleVersions": "2+", "fields": [peers]}
    (tmp_path / "PingResponse.json").write_text(json.dumps(response))
    gone = {"apiKey": 8, "type": "request", "name": "GoneRequest", "validVersions": "none"}
    (tmp_path / "GoneRequest.json").write_text(json.dumps(gone))
    return tmp_path


def generated(generator: ModuleType, folder: Path) -> dict[str, str]:
    files: dict[str, str] = generator.generate(generator.load(generator.definitions(folder)))
    return files


def test_facts_cross_over_and_prose_does_not(generator: ModuleType, folder: Path) -> None:
    files = generated(generator, folder)
    assert sorted(files) == ["__init__.py", "index_tables.py", "ping.py"]
    source = files["ping.py"]
    assert '"isr_nodes []int32 0+"' in source
    assert '"from_ string 2+ nullable=2+ default=null ignorable"' in source
    assert '"peers []PingRequestPeer 3+ tag=0 tagged=3+"' in source
    assert '"kraft_id int32 3+ default=16"' in source
    assert '"""Ping request, versions 1-3, flexible from 2."""' in source
    assert "prose" not in source.lower()


def test_structs_named_alike_take_the_name_of_their_message(
    generator: ModuleType, folder: Path
) -> None:
    source = generated(generator, folder)["ping.py"]
    assert "class PingRequestPeer(Message)" in source
    assert "class PingResponsePeer(Message)" in source


def test_the_messages_in_the_tree_are_up_to_date(generator: ModuleType) -> None:
    if not generator.DEFINITIONS.is_dir():
        pytest.skip("Kafka's message definitions are not at hand")
    present = {path.name: path.read_text() for path in generator.OUTPUT.glob("*.py")}
    assert generated(generator, generator.DEFINITIONS) == present
