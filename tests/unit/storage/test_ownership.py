"""Tests that a folder belongs to one topic, and never serves the records of another."""

from random import Random

import pytest

from barnabas.model.ids import TopicId
from barnabas.storage.log import LogSettings
from barnabas.storage.ownership import OWNER_FILE, own_folder
from barnabas.storage.recovery import open_log
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append

FIRST, SECOND = TopicId(b"\1" * 16), TopicId(b"\2" * 16)
FOLDER, STRANGERS = "data/topics/orders", "data/strangers"


def owned(disk: MemoryDisk, topic_id: TopicId) -> str:
    return own_folder(disk, FOLDER, topic_id, STRANGERS).problem


def test_a_folder_is_made_and_found_again() -> None:
    disk = MemoryDisk()
    assert owned(disk, FIRST) == ""
    assert disk.exists(f"{FOLDER}/{OWNER_FILE}")
    disk.make_folder(f"{FOLDER}/0")
    assert owned(disk, FIRST) == ""
    assert disk.exists(f"{FOLDER}/0")


def test_what_is_another_topics_is_set_aside() -> None:
    disk = MemoryDisk()
    owned(disk, FIRST)
    disk.write_atomic(f"{FOLDER}/records", b"of the first")
    assert "another topic's records" in owned(disk, SECOND)
    assert disk.list(FOLDER) == [OWNER_FILE]
    assert disk.read_bytes(f"{STRANGERS}/{FIRST.hex()}/records") == b"of the first"


def test_a_damaged_owner_file_is_rewritten_and_the_records_stay() -> None:
    disk = MemoryDisk()
    owned(disk, FIRST)
    disk.write_atomic(f"{FOLDER}/records", b"content")
    disk.flip(f"{FOLDER}/{OWNER_FILE}", 5)
    assert "written again" in owned(disk, FIRST)
    assert disk.read_bytes(f"{FOLDER}/records") == b"content"
    assert owned(disk, FIRST) == ""


@pytest.mark.parametrize("seed", range(30))
def test_what_was_flushed_is_still_the_topics_own_after_a_power_cut(seed: int) -> None:
    disk = MemoryDisk()
    taken = own_folder(disk, FOLDER, FIRST, STRANGERS)
    log = open_log(disk, f"{FOLDER}/0", LogSettings(), root="data").log
    taken.become_safe_with(log)
    append(log)
    log.flush()
    disk.power_cut(Random(seed))
    assert owned(disk, FIRST) == ""
    assert open_log(disk, f"{FOLDER}/0", LogSettings(), root="data").log.end_offset == 1
