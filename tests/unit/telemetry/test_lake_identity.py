"""Tests that a lake knows its topic: refusals, and how to continue with another topic."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.telemetry.lake import lake_checkpoints, lake_identity
from barnabas.telemetry.lake.lake import Lake
from barnabas.telemetry.lake.lake_identity import Source, WrongSourceError

SOURCE = Source(topic="gpu-telemetry", topic_id="id-1", cluster_id="c-1")


def write_checkpoint(
    lake: Lake, job: str, batches: int, *, committed: int, topic: str = "gpu-telemetry"
) -> None:
    for number in range(batches):
        end = {"@topicIds": {topic: "id-1"}, topic: {"0": number}}
        text = f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(end)}'
        lake.put(f"_checkpoints/{job}/offsets/{number}", text.encode())
        (Path(lake.root) / f"_checkpoints/{job}/offsets/.{number}.crc").touch()
    for number in range(committed):
        lake.put(f"_checkpoints/{job}/commits/{number}", b'v1\n{"nextBatchWatermarkMs":0}')


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake that has read three batches of its topic."""
    found = Lake(str(tmp_path))
    for job in ("bronze", "silver"):
        write_checkpoint(found, job, 3, committed=3)
    lake_identity.record(found, SOURCE)
    return found


def test_the_same_topic_is_taken(lake: Lake) -> None:
    lake_identity.check(lake, SOURCE, "gpu-telemetry")
    assert lake_identity.known_source(lake) == SOURCE


def test_a_lake_that_has_read_nothing_takes_any_topic(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake_identity.record(lake, SOURCE)
    assert lake_identity.known_source(lake) is None
    lake_identity.check(lake, None, "other")


@pytest.mark.parametrize(
    ("found", "topic", "advice"),
    [
        (Source(topic="other", topic_id="id-2"), "other", "Pass --topic gpu-telemetry"),
        (None, "gpu-telemetry", "which these brokers do not have. Pass the --bootstrap"),
        (replace(SOURCE, topic_id="id-2"), "gpu-telemetry", "was deleted and created again"),
        (replace(SOURCE, cluster_id="c-2"), "gpu-telemetry", "these brokers are cluster c-2"),
    ],
)
def test_another_topic_is_refused(
    lake: Lake, found: Source | None, topic: str, advice: str
) -> None:
    with pytest.raises(WrongSourceError) as refused:
        lake_identity.check(lake, found, topic)
    assert advice in str(refused.value)
    assert "--rebind" in str(refused.value)
    assert lake.root in str(refused.value)


def test_an_older_lake_is_known_by_its_checkpoints(lake: Lake) -> None:
    (Path(lake.root) / lake_identity.FILE).unlink()
    assert lake_identity.known_source(lake) == replace(SOURCE, cluster_id=None)
    lake_identity.check(lake, SOURCE, "gpu-telemetry")
    with pytest.raises(WrongSourceError, match="not from"):
        lake_identity.check(lake, replace(SOURCE, topic="other"), "other")


def test_another_topic_is_read_from_its_beginning(lake: Lake) -> None:
    other = Source(topic="other", topic_id="id-2", cluster_id="c-1")
    lake_identity.rebind(lake, other)
    for job in ("bronze", "silver"):
        assert lake_checkpoints.position(lake, job) == {}
        kept = lake.text(f"_checkpoints/{job}/offsets/2")
        assert kept == 'v1\n{"batchWatermarkMs":0}\n{}'
        assert not (Path(lake.root) / f"_checkpoints/{job}/offsets/.2.crc").exists()
    write_checkpoint(lake, "silver", 4, committed=4, topic="other")
    assert lake_identity.known_source(lake) == other
    with pytest.raises(WrongSourceError, match="Pass --topic other"):
        lake_identity.check(lake, SOURCE, "gpu-telemetry")


@pytest.mark.parametrize("found", [SOURCE, replace(SOURCE, cluster_id="c-2")])
def test_the_same_topic_keeps_its_offsets(lake: Lake, found: Source) -> None:
    lake_identity.rebind(lake, found)
    assert lake_identity.known_source(lake) == found
    position = lake_checkpoints.position(lake, "silver")
    assert position is not None
    assert position["gpu-telemetry"] == {"0": 2}


def test_a_batch_that_was_only_planned_is_forgotten(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    write_checkpoint(lake, "silver", 3, committed=2)
    lake_checkpoints.start_over(lake, "silver")
    assert lake.names("_checkpoints/silver/offsets") == ["0", "1"]
    assert lake_checkpoints.position(lake, "silver") == {}


def test_a_batch_that_the_lake_completed_is_done(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    write_checkpoint(lake, "silver", 3, committed=2)
    lake.complete("silver", {"query": "q", "batch": 2}, [])
    lake_checkpoints.start_over(lake, "silver")
    assert lake.names("_checkpoints/silver/commits") == ["0", "1", "2"]
    assert lake.names("_checkpoints/silver/offsets") == ["0", "1", "2"]
    assert lake_checkpoints.position(lake, "silver") == {}


def test_paths_in_a_checkpoint_follow_the_lake(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "new place"))
    entry = {"path": "file:///old/_batches/gold_10s/batch-0.json", "timestamp": 5, "batchId": 0}
    listed = "_checkpoints/findings/sources/0/0"
    lake.put(listed, f"v1\n{json.dumps(entry)}".encode())
    (tmp_path / "new place" / listed).with_name(".0.crc").touch()
    lake_checkpoints.relocate(lake)
    text = lake.text(listed)
    assert text is not None
    version, moved = text.splitlines()
    place = (tmp_path / "new place").as_uri()
    assert version == "v1"
    assert json.loads(moved) == {**entry, "path": f"{place}/_batches/gold_10s/batch-0.json"}
    assert not (tmp_path / "new place" / listed).with_name(".0.crc").exists()
    lake_checkpoints.relocate(lake)
    assert lake.text(listed) == text


def test_a_first_batch_that_was_only_planned_leaves_no_position(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    write_checkpoint(lake, "bronze", 1, committed=0)
    lake_checkpoints.start_over(lake, "bronze")
    assert lake_checkpoints.position(lake, "bronze") is None
