"""Builds requests that many dialogues send, with defaults for irrelevant fields."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from barnabas.handlers.registry import SERVED
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.protocol.apis import APIS
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.talk.requests import batch
from tools.compat_diff.steps import Ask, Dialogue, Scene, Talk

START_MS = 1_700_000_000_000
VersionedTalk = Callable[[Scene, int], Talk]


def versions(api: str) -> range:
    """Return the versions of an API that Barnabas serves."""
    key = next(key for key, facts in APIS.items() if facts.name == api)
    return range(SERVED[key].low, SERVED[key].high + 1)


def each_version(name: str, api: str, talk: VersionedTalk) -> dict[str, Dialogue]:
    """Return one dialogue for each version of an API."""

    def at(version: int) -> Dialogue:
        return lambda scene: talk(scene, version)

    return {f"{name}-v{version}": at(version) for version in versions(api)}


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    config: Mapping[str, str | None] | Sequence[tuple[str, str | None]] = (),
    assigned: Mapping[int, Sequence[int]] | None = None,
) -> CreatableTopic:
    """Return a topic to create."""
    pairs = config.items() if isinstance(config, Mapping) else config
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in pairs],
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in (assigned or {}).items()
        ],
    )


def create(*topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> Ask:
    """Create topics."""
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=5000, validate_only=validate_only)
    return Ask(request, version)


def metadata(*names: str, version: int = 12, create_them: bool = False) -> Ask:
    """Request metadata of topics by name."""
    topics = [MetadataRequestTopic(name=name) for name in names]
    return Ask(MetadataRequest(topics=topics, allow_auto_topic_creation=create_them), version)


def produce(
    name: str | bytes,
    records: bytes | bytearray | None,
    *,
    version: int | None = None,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
) -> Ask:
    """Send one batch to a topic by its name or id."""
    data = PartitionProduceData(
        index=partition, records=None if records is None else bytes(records)
    )
    named = TopicProduceData(
        name=name if isinstance(name, str) else "",
        topic_id=name if isinstance(name, bytes) else NO_TOPIC_ID,
        partition_data=[data],
    )
    request = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=3000, topic_data=[named]
    )
    return Ask(request, version or (12 if isinstance(name, str) else 13))


def fetch(
    name: str | bytes,
    offset: int = 0,
    *,
    version: int | None = None,
    partition: int = 0,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    partition_max_bytes: int = 1 << 20,
    **fields: int,
) -> Ask:
    """Fetch one partition; `fields` are those of the request."""
    wanted = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        current_leader_epoch=leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
        partition_max_bytes=partition_max_bytes,
    )
    named = FetchTopic(
        topic=name if isinstance(name, str) else "",
        topic_id=name if isinstance(name, bytes) else NO_TOPIC_ID,
        partitions=[wanted],
    )
    values = {"max_wait_ms": 10, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
    request = FetchRequest(topics=[named], **{**values, **fields})  # type: ignore[arg-type]
    return Ask(request, version or (12 if isinstance(name, str) else 17))


def list_offsets(
    name: str,
    *times: int,
    version: int = 9,
    partition: int = 0,
    leader_epoch: int = -1,
    isolation: int = 0,
) -> Iterator[Ask]:
    """List the offsets of several times, one after the other."""
    for timestamp in times:
        wanted = ListOffsetsPartition(
            partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation if version >= 2 else 0,
            topics=[ListOffsetsTopic(name=name, partitions=[wanted])],
        )
        yield Ask(request, version)


def init_producer(
    transactional_id: str | None = None,
    *,
    version: int = 4,
    timeout_ms: int = 60_000,
    producer: tuple[int, int] = (-1, -1),
) -> Ask:
    """Request a producer id."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )
    if version >= 3:
        request.producer_id, request.producer_epoch = producer
    return Ask(request, version)


def with_topic(scene: Scene, word: str = "a", partitions: int = 1, **config: str) -> Talk:
    """Create a topic and fill its first partition with three batches of two records."""
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    yield create(topic(scene.name(word), partitions, config=dotted))
    for number in range(3):
        start_ms = START_MS + 1000 * number
        yield produce(scene.name(word), batch(2, start_ms=start_ms, value=b"v%d" % number))


def all_of(requests: Iterator[Message], version: int) -> Talk:
    """Send requests one after the other."""
    for request in requests:
        yield Ask(request, version)
