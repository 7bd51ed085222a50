"""Compresses and decompresses record batches, with a limit on the decompressed size.

The broker stores and serves compressed batches unchanged. It decompresses them only to recompress
them with the codec of the topic, for compaction, for exact timestamp lookups and in tools. A small
batch must not fill the memory, so every codec stops at `limit` bytes. Most brokers need none of
this, so the libraries are imported on first use.
"""

import struct
import zlib
from enum import IntEnum
from typing import cast

from barnabas.model.errors import CorruptBatchError, TooLargeError
from barnabas.model.ports import Buffer

OUTPUT_BYTES_MAX = 256 * 1024 * 1024
XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = 16
XERIAL_BLOCK_BYTES = 32 * 1024
TOO_SMALL = "failed to write whole buffer"
"""Cramjam's error message if the output buffer is too small; other errors mean invalid data."""


class Codec(IntEnum):
    """The codec bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, content: Buffer, level: int | None = None) -> bytes:
    """Return the content compressed in the format that Kafka clients expect."""
    match codec:
        case Codec.NONE:
            return bytes(content)
        case Codec.GZIP:
            packer = zlib.compressobj(-1 if level is None else level, wbits=31)
            return packer.compress(content) + packer.flush()
        case Codec.SNAPPY:
            return _xerial_compress(content)
        case Codec.LZ4:
            import lz4.frame

            # The Java client refuses blocks that refer to earlier blocks.
            return bytes(
                lz4.frame.compress(content, compression_level=level or 0, block_linked=False)
            )
        case Codec.ZSTD:
            import cramjam

            return bytes(cramjam.zstd.compress(content, level=3 if level is None else level))


def decompress(codec: Codec, content: Buffer, limit: int = OUTPUT_BYTES_MAX) -> bytes:
    """Return the decompressed content; raise `CorruptBatchError` if it is invalid.

    Raises `TooLargeError` as soon as the output exceeds the limit.
    """
    unpacked: bytes | None
    try:
        match codec:
            case Codec.NONE:
                unpacked = bytes(content)
            case Codec.GZIP:
                unpacked = _gzip_decompress(bytes(content), limit)
            case Codec.SNAPPY:
                unpacked = _snappy_decompress(bytes(content), limit)
            case Codec.LZ4:
                unpacked = _lz4_decompress(bytes(content), limit)
            case Codec.ZSTD:
                unpacked = _zstd_decompress(content, limit)
    except (zlib.error, RuntimeError, EOFError, ValueError, _broken()) as error:
        raise CorruptBatchError(
            f"{codec.name.lower()} data cannot be decompressed: {error}"
        ) from error
    if unpacked is None or len(unpacked) > limit:
        raise TooLargeError(f"{codec.name.lower()} data decompresses to more than {limit} bytes")
    return unpacked


def _gzip_decompress(content: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    unpacked = unpacker.decompress(content, limit + 1)
    if len(unpacked) <= limit:
        _check_end(whole=unpacker.eof, rest=unpacker.unused_data)
    return unpacked


def _lz4_decompress(content: bytes, limit: int) -> bytes:
    import lz4.frame

    unpacker = lz4.frame.LZ4FrameDecompressor()
    unpacked = bytes(unpacker.decompress(content, max_length=limit + 1))
    if len(unpacked) <= limit:
        _check_end(whole=unpacker.eof, rest=unpacker.unused_data or b"")
    return unpacked


def _check_end(*, whole: bool, rest: bytes) -> None:
    if not whole:
        raise ValueError("it is truncated")
    if rest:
        raise ValueError(f"{len(rest)} bytes follow its end")


def _broken() -> type[Exception]:
    """Return cramjam's exception class; called only after an exception."""
    import cramjam

    return cast("type[Exception]", cramjam.DecompressionError)


def _zstd_decompress(content: Buffer, limit: int) -> bytes | None:
    """Decompress into a buffer that grows up to the limit, since cramjam has no limit itself.

    Returns None if the content is larger.
    """
    import cramjam

    room = min(limit, max(64 * 1024, len(content) * 8))
    while True:
        target = bytearray(room)
        try:
            size = cramjam.zstd.decompress_into(content, target)
        except cramjam.DecompressionError as error:
            if TOO_SMALL not in str(error):
                raise
            if room >= limit:
                return None
            room = min(limit, room * 4)
            continue
        return bytes(memoryview(target)[:size])


def _snappy_decompress(content: bytes, limit: int) -> bytes | None:
    """Decompress one block or several; return None if they are larger than the limit."""
    if not content.startswith(XERIAL_MAGIC):
        return _snappy_block(content, limit)
    blocks, position, total = [], XERIAL_HEADER_BYTES, 0
    while position + 4 <= len(content):
        (size,) = struct.unpack_from(">i", content, position)
        position += 4
        if size < 0 or position + size > len(content):
            raise ValueError("a snappy block reaches past the end")
        block = _snappy_block(content[position : position + size], limit - total)
        if block is None:
            return None
        blocks.append(block)
        total += len(block)
        position += size
    _check_end(whole=position == len(content), rest=b"")
    return b"".join(blocks)


def _snappy_block(content: bytes, limit: int) -> bytes | None:
    import cramjam

    if cramjam.snappy.decompress_raw_len(content) > limit:
        return None
    return bytes(cramjam.snappy.decompress_raw(content))


def _xerial_compress(content: Buffer) -> bytes:
    """Compress in the framing of Java's snappy library, which every Kafka client reads."""
    import cramjam

    view = memoryview(content)
    parts = [XERIAL_MAGIC, struct.pack(">ii", 1, 1)]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts += [struct.pack(">i", len(block)), block]
    return b"".join(parts)
