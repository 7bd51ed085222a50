"""Tests the map of keys against a dictionary, and its limits."""

from random import Random

import pytest

from barnabas.storage.compacting import key_map
from barnabas.storage.compacting.key_map import KEYS_MAX, TABLE_BYTES, KeyMap


@pytest.mark.parametrize("seed", range(20))
def test_it_is_a_dictionary_until_it_is_full(seed: int) -> None:
    rng = Random(seed)
    keys_max = rng.choice([1, 2, 3, 10, 100])
    found, expected = KeyMap(keys_max), dict[bytes, int]()
    for offset in range(500):
        key = b"%d" % rng.randrange(2 * keys_max)
        fits = key in expected or len(expected) < keys_max
        assert found.put(key, offset) == fits
        if fits:
            expected[key] = offset
    for number in range(2 * keys_max):
        key = b"%d" % number
        assert found.offset_of(key) == expected.get(key, -1)


def test_offset_zero_and_the_empty_key_are_known() -> None:
    found = KeyMap(1)
    assert found.offset_of(b"") == -1
    assert found.put(b"", 0)
    assert found.offset_of(b"") == 0


def test_digests_that_share_a_slot_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three keys hash to the last slot: the search continues at the first one."""

    class Digest:
        def __init__(self, key: bytes, *, digest_size: int) -> None:
            self._key = key.rjust(digest_size, b"\0")

        def digest(self) -> bytes:
            return self._key

    monkeypatch.setattr(key_map, "blake2b", Digest)
    found = KeyMap(3)
    slots = 5
    last = (slots - 1).to_bytes(8, "little")
    keys = [last + b"a" * 8, last + b"b" * 8, bytes(8) + b"c" * 8]
    for offset, key in enumerate(keys):
        assert found.put(key, offset)
    assert [found.offset_of(key) for key in keys] == [0, 1, 2]
    assert found.offset_of(last + b"d" * 8) == -1


def test_the_largest_map_stays_within_its_bytes() -> None:
    table = KeyMap(KEYS_MAX)
    assert table.size_bytes <= TABLE_BYTES
    assert KEYS_MAX >= 4_000_000
