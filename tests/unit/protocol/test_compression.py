"""Tests every codec in both directions, decompression bombs, and invalid bytes."""

import zlib
from random import Random

import cramjam
import lz4.frame
import pytest

from barnabas.model.errors import CorruptBatchError
from barnabas.protocol import compression
from barnabas.protocol.compression import Codec, compress, decompress

CODECS = list(Codec)
PACKING = [codec for codec in Codec if codec is not Codec.NONE]
CONTENTS = [b"", b"x", b"hello " * 1_000, Random(1).randbytes(200_000), bytes(3_000_000)]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("content", CONTENTS, ids=len)
def test_there_and_back(codec: Codec, content: bytes) -> None:
    packed = compress(codec, content)
    assert decompress(codec, packed) == content
    assert decompress(codec, memoryview(bytearray(packed))) == content
    assert decompress(codec, packed, limit=len(content)) == content


@pytest.mark.parametrize("codec", PACKING)
def test_a_bomb_is_stopped_before_it_fills_memory(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 * 1024 * 1024))
    with pytest.raises(CorruptBatchError):
        decompress(codec, bomb, limit=1_000_000)


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, b"0123456789" * 10)
    assert len(decompress(codec, packed, limit=100)) == 100
    with pytest.raises(CorruptBatchError):
        decompress(codec, packed, limit=99)


@pytest.mark.parametrize("codec", PACKING)
def test_a_cut_anywhere_is_noticed(codec: Codec) -> None:
    packed = compress(codec, Random(2).randbytes(40) * 5)
    for size in range(len(packed)):
        if codec is Codec.SNAPPY and size == compression.XERIAL_HEADER_BYTES:
            continue  # a snappy stream without blocks is an empty stream
        with pytest.raises(CorruptBatchError):
            decompress(codec, packed[:size])


@pytest.mark.parametrize("codec", PACKING)
def test_what_follows_the_end_is_noticed(codec: Codec) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(codec, compress(codec, b"content") + b"garbage")


@pytest.mark.parametrize("codec", PACKING)
def test_garbage_raises_one_kind_of_error(codec: Codec) -> None:
    rng = Random(int(codec))
    good = compress(codec, b"some content to be packed " * 20)
    for _ in range(400):
        broken = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        for content in (bytes(broken), rng.randbytes(rng.randint(0, 90))):
            try:
                unpacked = decompress(codec, content, limit=100_000)
            except CorruptBatchError:
                continue
            assert len(unpacked) <= 100_000


def test_zstd_garbage_is_not_given_ever_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = []

    def decompress_into(_: bytes, target: bytearray) -> int:
        rooms.append(len(target))
        raise cramjam.DecompressionError("Unknown frame descriptor")

    monkeypatch.setattr(cramjam.zstd, "decompress_into", decompress_into)
    with pytest.raises(CorruptBatchError):
        decompress(Codec.ZSTD, b"garbage")
    assert len(rooms) == 1


def test_what_other_libraries_pack_is_unpacked() -> None:
    content = b"packed by somebody else " * 3_000
    assert decompress(Codec.GZIP, zlib.compress(content, wbits=31)) == content
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(content))) == content
    linked = lz4.frame.compress(content, block_linked=True, content_checksum=True)
    assert decompress(Codec.LZ4, linked) == content
    assert decompress(Codec.LZ4, lz4.frame.compress(content, store_size=False)) == content
    assert decompress(Codec.ZSTD, bytes(cramjam.zstd.compress(content, level=19))) == content


def test_what_is_packed_others_unpack() -> None:
    content = b"packed by us " * 9_000
    assert zlib.decompress(compress(Codec.GZIP, content), wbits=31) == content
    assert lz4.frame.decompress(compress(Codec.LZ4, content)) == content
    assert bytes(cramjam.zstd.decompress(compress(Codec.ZSTD, content))) == content
    packed = compress(Codec.SNAPPY, content)
    assert packed.startswith(compression.XERIAL_MAGIC)


@pytest.mark.parametrize(("codec", "hard"), [(Codec.GZIP, 9), (Codec.LZ4, 12), (Codec.ZSTD, 19)])
def test_levels_are_passed_on(codec: Codec, hard: int) -> None:
    content = b"".join(b"%d," % (n * n) for n in range(20_000))
    assert len(compress(codec, content, hard)) < len(compress(codec, content, 1))
