"""Builders for the requests that most dialogues send, with defaults for irrelevant fields."""

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.model.ids import NO_TOPIC_ID
from barnabas.protocol.compression import Codec
from barnabas.protocol.messages import fetch as fetch_messages
from barnabas.protocol.messages import produce as produce_messages
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.records import Record, build, parse_header, records
from tests.support.talk.dialogue import START_MS, Dialogue, Exchange

BY_NAME = 12
"""The last version of Produce and of Fetch that identifies topics by name."""
BY_ID = 13


def batch(
    count: int = 1,
    *,
    codec: Codec = Codec.NONE,
    attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    start_ms: int = START_MS,
    key: bytes | None = b"k",
    value: bytes = b"v",
) -> bytearray:
    """Return a producer's batch: records a millisecond apart."""
    producer_id, producer_epoch, base_sequence = producer
    return build(
        [Record(number, start_ms + number, key, value) for number in range(count)],
        codec=codec,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def create_topic(
    talk: Dialogue, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> bytes:
    """Create a topic; return its id."""
    entries = [CreatableTopicConfig(name=k, value=v) for k, v in (config or {}).items()]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=entries
    )
    (result,) = talk.ask(CreateTopicsRequest(topics=[topic])).topics
    assert result.error_code == 0, result.error_message
    topic_id: bytes = result.topic_id
    return topic_id


def delete_topic(talk: Dialogue, name: str) -> None:
    """Delete a topic."""
    (result,) = talk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])).responses
    assert result.error_code == 0, result.error_message


def send_produce(
    talk: Dialogue,
    topic: str | bytes,
    content: bytes | bytearray | None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int | None = None,
) -> Exchange:
    """Send one batch to a topic by its name or id."""
    by_name = isinstance(topic, str)
    data = produce_messages.PartitionProduceData(
        index=partition, records=None if content is None else bytes(content)
    )
    named = produce_messages.TopicProduceData(
        name=topic if isinstance(topic, str) else "",
        topic_id=topic if isinstance(topic, bytes) else NO_TOPIC_ID,
        partition_data=[data],
    )
    request = produce_messages.ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[named])
    return talk.send(request, version or (BY_NAME if by_name else BY_ID))


def produce(
    talk: Dialogue,
    topic: str | bytes,
    content: bytes | bytearray | None = None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int | None = None,
) -> Any:
    """Send one batch; return the response for its partition."""
    sent = batch() if content is None else content
    exchange = send_produce(talk, topic, sent, partition=partition, acks=acks, version=version)
    ((result,),) = [t.partition_responses for t in exchange.answer.responses]
    return result


def fetch_request(
    topic: str | bytes,
    offset: int = 0,
    *,
    partition: int = 0,
    leader_epoch: int = -1,
    partition_max_bytes: int = 1 << 20,
    **limits: int,
) -> fetch_messages.FetchRequest:
    """Return a request for one partition; `limits` are fields of the request."""
    wanted = fetch_messages.FetchPartition(
        partition=partition,
        fetch_offset=offset,
        current_leader_epoch=leader_epoch,
        partition_max_bytes=partition_max_bytes,
    )
    named = fetch_messages.FetchTopic(
        topic=topic if isinstance(topic, str) else "",
        topic_id=topic if isinstance(topic, bytes) else NO_TOPIC_ID,
        partitions=[wanted],
    )
    fields: dict[str, Any] = {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        **limits,
    }
    return fetch_messages.FetchRequest(topics=[named], **fields)


def fetch(
    talk: Dialogue,
    topic: str | bytes,
    offset: int = 0,
    *,
    version: int | None = None,
    leader_epoch: int = -1,
    partition_max_bytes: int = 1 << 20,
    **limits: int,
) -> Any:
    """Fetch one partition without a session; return the response for it."""
    request = fetch_request(
        topic,
        offset,
        leader_epoch=leader_epoch,
        partition_max_bytes=partition_max_bytes,
        **limits,
    )
    chosen = version or (BY_NAME if isinstance(topic, str) else BY_ID)
    ((result,),) = [t.partitions for t in talk.ask(request, chosen).responses]
    return result


def read(content: bytes | None) -> list[Record]:
    """Return the records of a fetched partition."""
    found: list[Record] = []
    rest = content or b""
    while rest:
        header = parse_header(rest)
        found += records(rest[: header.size], header)
        rest = rest[header.size :]
    return found


def list_offset(
    talk: Dialogue, topic: str, timestamp: int, *, version: int = 11
) -> tuple[int, int, int]:
    """Return error, offset and timestamp for a time."""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    ((result,),) = [t.partitions for t in talk.ask(request, version).topics]
    return result.error_code, result.offset, result.timestamp


def error_codes(results: Sequence[Any]) -> list[int]:
    """Return the error code of each result."""
    return [result.error_code for result in results]
