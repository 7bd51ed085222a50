"""What a producer's batch must be like before it may enter a log.

All of it is a look at the header and one checksum. Only two topics cost more: a compacted one,
where every record needs a key, and one whose `compression.type` is not the producer's. Where the
header's timestamps are out of range, the records tell which of them are.
"""

from collections.abc import Callable

from barnabas.metadata.topic_config import TopicConfig
from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode, InvalidRecordsError
from barnabas.protocol.compression import Codec
from barnabas.protocol.crc import crc32c
from barnabas.protocol.records import (
    CODEC_MASK,
    CONTROL,
    CRC_FROM,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    Record,
    parse_header,
    recompress,
    records,
)

LAST_CODEC = int(Codec.ZSTD)
PRODUCER_CODEC = "producer"
UNCOMPRESSED = "uncompressed"
LZ4_FAST_LEVEL = 9
"""Kafka's default, for which it takes the fast compressor rather than the high one."""
NO_TIMESTAMP = -1
RECORD_ERRORS_MAX = 10_000
"""How many wrong records an answer names; librdkafka puts no more into a batch by default."""


def parse_header_or_refuse(batch: memoryview) -> BatchHeader:
    """Read the header of what a producer sent, if it can have one."""
    if len(batch) < HEADER_BYTES:
        raise ApiError(ErrorCode.INVALID_RECORD, "the records are shorter than a batch header")
    return parse_header(batch)


def checked(batch: memoryview, header: BatchHeader, config: TopicConfig, now_ms: int) -> memoryview:
    """Return the batch to append, which is nearly always the one given; raise `ApiError` else."""
    _check_shape(batch, header, config)
    too_late = header.max_timestamp > now_ms + config.message_timestamp_after_max_ms
    if too_late or header.base_timestamp < now_ms - config.message_timestamp_before_max_ms:
        _check_timestamps(batch, header, config, now_ms)
    if config.compacts:
        _check_keys(batch, header)
    if config.compression_type != PRODUCER_CODEC:
        wanted = _codec(config.compression_type)
        if wanted != header.codec:
            return _recompressed(batch, header, wanted, config)
    return batch


def _check_shape(batch: memoryview, header: BatchHeader, config: TopicConfig) -> None:
    size = len(batch)
    # Taken apart once: that costs as much as to ask it for two of its fields.
    _, length, _, magic, crc, attributes, last_delta, _, _, producer, _, sequence, count = header
    if magic != MAGIC:
        raise ApiError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"only record batches of version 2 are taken, not {magic}",
        )
    if length + LENGTH_OVERHEAD != size:
        raise ApiError(
            ErrorCode.INVALID_RECORD, "a partition takes exactly one whole batch a request"
        )
    _check_size(size, config)
    if crc32c(batch[CRC_FROM:]) != crc:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"bytes {CRC_FROM} to {size} do not match their checksum"
        )
    if count != last_delta + 1 or count <= 0:
        raise ApiError(
            ErrorCode.INVALID_RECORD, f"{count} records do not reach offset +{last_delta}"
        )
    if attributes & CONTROL:
        raise ApiError(ErrorCode.INVALID_RECORD, "clients do not write control batches")
    if attributes & CODEC_MASK > LAST_CODEC:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {header.codec} is not known")
    if producer >= 0:
        if sequence < 0:
            raise ApiError(ErrorCode.INVALID_RECORD, "a batch with a producer id needs a sequence")
    elif attributes & TRANSACTIONAL:
        raise ApiError(ErrorCode.INVALID_RECORD, "a transaction needs a producer id")


def _check_size(size: int, config: TopicConfig) -> None:
    if size > config.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes is over max.message.bytes={config.max_message_bytes}",
        )


def _check_timestamps(
    batch: memoryview, header: BatchHeader, config: TopicConfig, now_ms: int
) -> None:
    """Refuse records whose timestamps are out of range; a record without one is taken."""
    if config.stamps_on_append:
        return
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms

    def fault(record: Record) -> str | None:
        if earliest <= record.timestamp <= latest or record.timestamp == NO_TIMESTAMP:
            return None
        return f"timestamp {record.timestamp} is not within {earliest} to {latest}"

    _check_records(batch, header, ErrorCode.INVALID_TIMESTAMP, "timestamp out of range", fault)
    if header.max_timestamp > latest:
        message = f"the batch claims timestamp {header.max_timestamp}, after {latest}"
        raise ApiError(ErrorCode.INVALID_TIMESTAMP, message)


def _check_keys(batch: memoryview, header: BatchHeader) -> None:
    def fault(record: Record) -> str | None:
        return None if record.key is not None else "a record of a compacted topic needs a key"

    _check_records(batch, header, ErrorCode.INVALID_RECORD, "no key in a compacted topic", fault)


def _check_records(
    batch: memoryview,
    header: BatchHeader,
    code: ErrorCode,
    problem: str,
    fault: Callable[[Record], str | None],
) -> None:
    """Refuse a batch for those of its records that have a fault."""
    try:
        faults = [fault(record) for record in records(batch, header)]
    except CorruptBatchError as error:
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error
    wrong = [(place, text) for place, text in enumerate(faults) if text is not None]
    if wrong:
        message = f"{len(wrong)} of {len(faults)} records are refused: {problem}"
        raise InvalidRecordsError(code, message, wrong[:RECORD_ERRORS_MAX])


def _recompressed(
    batch: memoryview, header: BatchHeader, codec: Codec, config: TopicConfig
) -> memoryview:
    try:
        packed = memoryview(recompress(batch, header, codec, _level(codec, config)))
    except CorruptBatchError as error:
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error
    _check_size(len(packed), config)
    return packed


def _level(codec: Codec, config: TopicConfig) -> int | None:
    """Return how hard to compress; None is the codec's own default."""
    match codec:
        case Codec.GZIP:
            return config.compression_gzip_level
        case Codec.LZ4 if config.compression_lz4_level != LZ4_FAST_LEVEL:
            return config.compression_lz4_level
        case Codec.ZSTD:
            return config.compression_zstd_level
        case _:
            return None


def _codec(name: str) -> Codec:
    return Codec.NONE if name == UNCOMPRESSED else Codec[name.upper()]
