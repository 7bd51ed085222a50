"""Tests walking batches, and the ways in which bytes are not a batch."""

from random import Random

import pytest

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Buffer
from barnabas.protocol.records import HEADER_BYTES
from barnabas.storage.walk import WINDOW_BYTES, header_at, walk
from tests.support.disks.memory_disk import MemoryDisk, MemoryFile
from tests.support.talk.batches import make_batch


def file_of(*parts: Buffer) -> MemoryFile:
    file = MemoryDisk().open("data/file", create=True)
    file.append(parts)
    return file


def sized(size: int) -> memoryview:
    return make_batch([(b"k", b"v" * size)])


@pytest.mark.parametrize("check", [True, False])
def test_every_batch_is_found_whatever_its_size(check: bool) -> None:
    sizes = [0, 1, 4096, 100, WINDOW_BYTES - 100, 3, 2 * WINDOW_BYTES, 5, 4096 - HEADER_BYTES]
    parts = [sized(size) for size in sizes]
    file = file_of(*parts)
    found = list(walk(file, 0, file.size(), check=check))
    assert [f.header.size for f in found] == [len(part) for part in parts]
    assert [f.position for f in found] == [sum(map(len, parts[:n])) for n in range(len(parts))]


def test_many_small_batches_cross_the_windows() -> None:
    file = file_of(*[sized(Random(n).randint(0, 900)) for n in range(4_000)])
    assert file.size() > WINDOW_BYTES
    assert len(list(walk(file, 0, file.size(), check=True))) == 4_000
    assert len(list(walk(file, 0, file.size(), check=False))) == 4_000


@pytest.mark.parametrize("cut", [1, 12, HEADER_BYTES - 1, HEADER_BYTES, 70])
def test_a_cut_batch_ends_the_walk(cut: int) -> None:
    whole = sized(20)
    file = file_of(whole, whole[:cut])
    walked = walk(file, 0, file.size(), check=False)
    assert next(walked).position == 0
    with pytest.raises(CorruptBatchError):
        next(walked)


def test_a_file_shorter_than_it_should_be_is_noticed() -> None:
    whole = sized(20)
    file = file_of(whole)
    with pytest.raises(CorruptBatchError):
        list(walk(file, 0, 2 * len(whole), check=True))


@pytest.mark.parametrize("byte", range(8, HEADER_BYTES + 5))
def test_a_changed_byte_is_noticed_where_the_checksum_reaches(byte: int) -> None:
    damaged = bytearray(sized(50))
    damaged[byte] ^= 0x10
    file = file_of(damaged)
    if 12 <= byte < 16:  # the leader epoch is stamped in place, outside of the checksum
        assert list(walk(file, 0, file.size(), check=True))
    else:
        with pytest.raises(CorruptBatchError):
            list(walk(file, 0, file.size(), check=True))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (bytes(200), "claims 0 bytes"),
        (b"\xff" * 200, "claims -1 bytes"),
        (bytes(8) + b"\x7f\xff\xff\xff" + bytes(200), "claims 2147483647 bytes"),
        (bytes(8) + (150).to_bytes(4, "big") + bytes(200), "not a record batch of version 2"),
    ],
)
def test_garbage_is_called_what_it_is(content: bytes, why: str) -> None:
    with pytest.raises(CorruptBatchError, match=why):
        header_at(file_of(content), 0, len(content))


def test_random_bytes_are_never_a_batch() -> None:
    rng = Random(7)
    for _ in range(200):
        file = file_of(rng.randbytes(rng.randint(1, 300)))
        with pytest.raises(CorruptBatchError):
            list(walk(file, 0, file.size(), check=True))
