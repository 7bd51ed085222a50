"""Validates a producer's batch before it is appended.

For most topics, the header and one checksum are enough. Records are read for a compacted topic,
where each needs a key, for a topic whose `compression.type` is not the producer's, and where the
header's timestamps are out of range.

There are limits, since a few bytes may decompress into very many records. A batch over a limit gets
MESSAGE_TOO_LARGE, after which no producer sends the same batch again: librdkafka fails its records
and the Java producer splits it into smaller batches. (No producer splits a batch after
INVALID_RECORD, the error for a batch that cannot be read.) A check that takes longer than an event
is done in steps (`model/steps.py`), in the queue of its partition
(`node/partitions/batch_checking.py`).
"""

from barnabas.metadata.topic_config import COMPACT, TopicConfig
from barnabas.model.errors import (
    ApiError,
    BrokerError,
    CorruptBatchError,
    ErrorCode,
    InvalidRecordsError,
    TooLargeError,
)
from barnabas.model.steps import Rest, Steps, begin
from barnabas.protocol.compression import OUTPUT_BYTES_MAX, Codec
from barnabas.protocol.crc import crc32c
from barnabas.protocol.records import (
    CODEC_MASK,
    CONTROL,
    CRC_FROM,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    parse_header,
    repacked,
)
from barnabas.protocol.scanning import (
    RECORD_BYTES_MIN,
    RecordCheck,
    check_end,
    packed,
    portions,
    skip_records,
    unpacked,
)

LAST_CODEC = int(Codec.ZSTD)
PRODUCER_CODEC = "producer"
UNCOMPRESSED = "uncompressed"
LZ4_FAST_LEVEL = 9
"""Kafka's default, for which it takes the fast compressor rather than the high one."""
NO_TIMESTAMP = -1
RECORD_ERRORS_MAX = 10_000
"""How many wrong records an answer names; librdkafka puts no more into a batch by default."""
RECORDS_MAX = 1_000_000
"""The largest batch whose records are opened: librdkafka's limit for `batch.num.messages`."""
UNPACKED_BYTES_MIN = 16 * 1024 * 1024
UNPACKED_FACTOR = 16
"""Uncompressed records may take this many times `max.message.bytes`, and at least the bytes
above."""
RECORDS_A_STEP = 1_000
LENGTHS_A_STEP = 10_000
"""How many records one event reads, and of how many it reads only the lengths."""


class MustWaitError(BrokerError):
    """A batch cannot be checked within an event, or follows one that is being checked."""


def parse_header_or_refuse(records: memoryview) -> BatchHeader:
    """Read the batch header of what a producer sent; refuse bytes that are too short for one."""
    if len(records) < HEADER_BYTES:
        raise ApiError(ErrorCode.INVALID_RECORD, "the records are shorter than a batch header")
    return parse_header(records)


def checked(
    batch: memoryview,
    header: BatchHeader,
    config: TopicConfig,
    now_ms: int,
    queue: object | None = None,
) -> memoryview:
    """Return the batch to append, nearly always the one given; raise `ApiError` to refuse it.

    Raises `MustWaitError` if the check takes longer than an event (`checking` does it in steps), or
    if other batches of the partition are in the queue, which come first.
    """
    if queue is not None:
        raise MustWaitError
    check_shape(batch, header, config)
    if (
        header.max_timestamp > now_ms + config.message_timestamp_after_max_ms
        or header.base_timestamp < now_ms - config.message_timestamp_before_max_ms
        or COMPACT in config.cleanup_policy
        or config.compression_type != PRODUCER_CODEC
    ):  # the header is not enough
        begun = begin(_opened(batch, header, config, now_ms))
        if isinstance(begun, Rest):
            raise MustWaitError
        batch = begun
    if len(batch) > config.segment_bytes:
        raise _over_segment(batch, config)
    return batch


def checking(
    batch: memoryview, header: BatchHeader, config: TopicConfig, now_ms: int
) -> Steps[memoryview]:
    """Do the same as `checked` in steps, for a batch whose header was checked."""
    batch = yield from _opened(batch, header, config, now_ms)
    if len(batch) > config.segment_bytes:
        raise _over_segment(batch, config)
    return batch


def _over_segment(batch: memoryview, config: TopicConfig) -> ApiError:
    """Return the refusal of a batch for which no segment is large enough, as it would be stored."""
    return ApiError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"a batch of {len(batch)} bytes is over segment.bytes={config.segment_bytes}",
    )


def _opened(
    batch: memoryview, header: BatchHeader, config: TopicConfig, now_ms: int
) -> Steps[memoryview]:
    times = _Times(header, config, now_ms)
    name = config.compression_type
    codec = Codec(header.codec) if name == PRODUCER_CODEC else _codec(name)
    if not times.must_check and not config.compacts and codec == header.codec:
        return batch
    try:
        return (yield from _records_checked(batch, header, config, times, codec))
    except TooLargeError as error:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{error}, the limit under max.message.bytes={config.max_message_bytes}: send smaller"
            " batches",
        ) from error
    except CorruptBatchError as error:
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error


def _records_checked(
    batch: memoryview, header: BatchHeader, config: TopicConfig, times: "_Times", codec: Codec
) -> Steps[memoryview]:
    """Check every record, and compress them again if the topic has another codec."""
    count = header.record_count
    if count > RECORDS_MAX:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {count} records is over the limit of {RECORDS_MAX}: send smaller batches",
        )
    limit = unpacked_bytes_max(config)
    body = yield from unpacked(Codec(header.codec), batch[HEADER_BYTES:], limit)
    if len(body) < count * RECORD_BYTES_MIN:
        raise CorruptBatchError(f"{len(body)} bytes cannot hold {count} records")
    if times.must_check or config.compacts:
        yield from _looked_at(body, header, config, times)
    if codec == header.codec:
        return batch
    yield from _lengths_checked(body, count)
    content = yield from packed(codec, body, _level(codec, config))
    changed = memoryview(repacked(batch, header, codec, content))
    if len(changed) > config.max_message_bytes:
        raise _too_large(len(changed), config)
    return changed


def _looked_at(
    body: bytes, header: BatchHeader, config: TopicConfig, times: "_Times"
) -> Steps[None]:
    """Refuse records that cannot be read, are out of range or have no key."""
    check = RecordCheck(body, 0, header.record_count, times.deltas, RECORD_ERRORS_MAX)
    while check.look(RECORDS_A_STEP):
        yield None
    times.refuse(check)
    if config.compacts:
        _refuse_without_key(check, header.record_count)


def _lengths_checked(body: bytes, count: int) -> Steps[None]:
    """Refuse records that do not fill their batch exactly, as their lengths say."""
    position = 0
    for portion in portions(count, LENGTHS_A_STEP):
        if position:
            yield None
        position = skip_records(body, position, portion)
    check_end(body, position)


def unpacked_bytes_max(config: TopicConfig) -> int:
    """Return how many bytes the records of a batch may take uncompressed."""
    wanted = max(UNPACKED_BYTES_MIN, UNPACKED_FACTOR * config.max_message_bytes)
    return min(wanted, OUTPUT_BYTES_MAX)


class _Times:
    """The timestamps that a topic accepts; a record without one is accepted."""

    def __init__(self, header: BatchHeader, config: TopicConfig, now_ms: int) -> None:
        self._header = header
        self._earliest = now_ms - config.message_timestamp_before_max_ms
        self._latest = now_ms + config.message_timestamp_after_max_ms
        late = header.max_timestamp > self._latest
        self.must_check = not config.stamps_on_append and (
            late or header.base_timestamp < self._earliest
        )
        """Whether the header does not say that all timestamps are within range."""

    @property
    def deltas(self) -> tuple[int, int, int] | None:
        """The limits for `RecordCheck`; None if the records need not be read."""
        base = self._header.base_timestamp
        if not self.must_check or self._is_fixed:
            return None
        return self._earliest - base, self._latest - base, NO_TIMESTAMP - base

    @property
    def _is_fixed(self) -> bool:
        """Whether all records have the timestamp of the batch, as the producer claims."""
        return bool(self._header.attributes & LOG_APPEND_TIME)

    def refuse(self, check: RecordCheck) -> None:
        """Refuse the batch if the timestamps of its records or its header are out of range."""
        if not self.must_check:
            return
        header = self._header
        count, total = check.out_of_range_count, header.record_count
        wrong = [(place, header.base_timestamp + delta) for place, delta in check.out_of_range]
        if self._is_fixed and not self._takes(header.max_timestamp):
            count = total
            wrong = [(place, header.max_timestamp) for place in range(total)[:RECORD_ERRORS_MAX]]
        if count:
            message = f"{count} of {total} records are refused: timestamp out of range"
            limits = f"is not within {self._earliest} to {self._latest}"
            named = [(place, f"timestamp {timestamp} {limits}") for place, timestamp in wrong]
            raise InvalidRecordsError(ErrorCode.INVALID_TIMESTAMP, message, named)
        if header.max_timestamp > self._latest:
            message = f"the batch claims timestamp {header.max_timestamp}, after {self._latest}"
            raise ApiError(ErrorCode.INVALID_TIMESTAMP, message)

    def _takes(self, timestamp: int) -> bool:
        return self._earliest <= timestamp <= self._latest or timestamp == NO_TIMESTAMP


def _refuse_without_key(check: RecordCheck, total: int) -> None:
    if check.without_key_count:
        message = (
            f"{check.without_key_count} of {total} records are refused: no key in a compacted topic"
        )
        problem = "a record of a compacted topic needs a key"
        named = [(place, problem) for place in check.without_key]
        raise InvalidRecordsError(ErrorCode.INVALID_RECORD, message, named)


def check_shape(batch: memoryview, header: BatchHeader, config: TopicConfig) -> None:
    """Refuse a batch for what its header and its checksum say."""
    size = len(batch)
    # Unpacked once: that costs as much as reading two of its fields.
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
    if size > config.max_message_bytes:
        raise _too_large(size, config)
    if crc32c(batch[CRC_FROM:]) != crc:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"bytes {CRC_FROM} to {size} do not match their checksum"
        )
    if count != last_delta + 1 or count <= 0:
        raise ApiError(
            ErrorCode.INVALID_RECORD, f"{count} records do not reach offset +{last_delta}"
        )
    if attributes & CONTROL or attributes & CODEC_MASK > LAST_CODEC:
        raise _bad_attributes(header)
    if producer >= 0:
        if sequence < 0:
            raise ApiError(ErrorCode.INVALID_RECORD, "a batch with a producer id needs a sequence")
    elif attributes & TRANSACTIONAL:
        raise ApiError(ErrorCode.INVALID_RECORD, "a transaction needs a producer id")


def _bad_attributes(header: BatchHeader) -> ApiError:
    if header.attributes & CONTROL:
        return ApiError(ErrorCode.INVALID_RECORD, "clients do not write control batches")
    return ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {header.codec} is not known")


def _too_large(size: int, config: TopicConfig) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of {size} bytes is over max.message.bytes={config.max_message_bytes}",
    )


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
