"""Metadata (key 3), versions 0 to 13: topics by name or id, and automatic creation.

A topic that is created automatically is in the response at once. Kafka answers
LEADER_NOT_AVAILABLE, and the client retries. If another broker leads it, that broker may learn of
it a little later. The response names the controller if it is a broker; any broker forwards requests
to it.
"""

from collections.abc import Container

from barnabas.controller.topic_decisions import check_name
from barnabas.handlers.answers import all_of, in_steps
from barnabas.handlers.context import RequestContext
from barnabas.metadata.image import PartitionImage, TopicImage
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.model.pending import Pending
from barnabas.model.steps import Steps, Work
from barnabas.node.node import Node
from barnabas.protocol.codec import encoder
from barnabas.protocol.message import Encoded
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NAMELESS_FROM = 12
"""Requests carry ids from version 10 on, but only from here on can an answer go without a name."""
TOPIC_OPERATIONS = 3576
CLUSTER_OPERATIONS = 8096
"""Everything is allowed, as bits, while there are no ACLs."""
AT_ONCE_MAX = 500
"""How many topics and partitions are described without steps."""
UNITS = 8
"""What it costs to describe one of them."""


def handle(
    node: Node, request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Pending[MetadataResponse]:
    """Describe the brokers and the topics asked for; from version 1 on none means all."""
    refused: dict[str, ErrorCode] = {}
    making = [_make(node, name, context, refused) for name in _to_create(node, request, context)]
    if not making:
        if _count(_asked(node, request, context)) > AT_ONCE_MAX:
            return in_steps(node, _in_steps(node, request, context), context)
        return _response(node, request, context, refused)
    return all_of(list[Pending[None] | None](making)).map(
        lambda _: _response(node, request, context, refused)
    )


def _count(topics: list[TopicImage]) -> int:
    """Return how many topics and partitions are to be described."""
    return sum(1 + len(topic.partitions) for topic in topics)


def _in_steps(
    node: Node, request: MetadataRequest, context: RequestContext
) -> Steps[MetadataResponse]:
    """Describe the topics asked for, each in its state at that time."""
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else None
    encode_topic = encoder(MetadataResponseTopic, context.version)
    encode_partition = encoder(MetadataResponsePartition, context.version)
    nameless = context.version >= NAMELESS_FROM
    work, topics, living = Work(), Encoded(), _living(node)
    every = _wants_all(request, context)
    for each in list(node.image.topics.values()) if every else request.topics or ():
        topic = each if isinstance(each, TopicImage) else _found(node, each, nameless=nameless)
        if topic is None:
            assert isinstance(each, MetadataRequestTopic)
            topics.append(encode_topic(_find(node, each, operations, {}, nameless=nameless)))
            continue
        partitions = Encoded()
        for index, partition in enumerate(node.replicas.newest(topic)):
            partitions.append(encode_partition(_partition(index, partition, living)))
            if work.spend(UNITS):
                yield None
                living = _living(node)
        topics.append(encode_topic(_described(topic, partitions, operations)))
        if work.spend(UNITS):
            yield None
    return _around(node, request, topics)


def _make(
    node: Node, name: str, context: RequestContext, refused: dict[str, ErrorCode]
) -> Pending[None]:
    """Create a topic automatically; a refusal is part of the response."""

    def refuse(code: ErrorCode) -> None:
        refused[name] = code

    try:
        return node.auto_create(name, context.now_ms).or_refused(refuse)
    except ApiError as error:
        refuse(error.code)
        return Pending.of(None)


def _to_create(node: Node, request: MetadataRequest, context: RequestContext) -> list[str]:
    allowed = request.allow_auto_topic_creation or context.version < 4
    if not (allowed and node.settings.broker.auto_create_topics):
        return []
    names = [topic.name for topic in request.topics or () if topic.name and not _by_id(topic)]
    return [name for name in dict.fromkeys(names) if name not in node.image.topics]


def _by_id(topic: MetadataRequestTopic) -> bool:
    """Tell whether a topic is asked for by id: Java's Admin then sends an empty name, not null."""
    return topic.topic_id != NO_TOPIC_ID or topic.name is None


def _asked(node: Node, request: MetadataRequest, context: RequestContext) -> list[TopicImage]:
    """Return those of the topics asked for that exist."""
    if _wants_all(request, context):
        return list(node.image.topics.values())
    found = [
        node.image.topic_by_id(topic.topic_id) if _by_id(topic) else _by_name(node, topic)
        for topic in request.topics or ()
    ]
    return [topic for topic in found if topic is not None]


def _by_name(node: Node, topic: MetadataRequestTopic) -> TopicImage | None:
    return None if topic.name is None else node.image.topics.get(topic.name)


def _wants_all(request: MetadataRequest, context: RequestContext) -> bool:
    return request.topics is None or (context.version == 0 and not request.topics)


def _response(
    node: Node, request: MetadataRequest, context: RequestContext, refused: dict[str, ErrorCode]
) -> MetadataResponse:
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else None
    if _wants_all(request, context):
        topics = [_describe(node, topic, operations) for topic in node.image.topics.values()]
    else:
        nameless = context.version >= NAMELESS_FROM
        topics = [
            _find(node, topic, operations, refused, nameless=nameless)
            for topic in request.topics or ()
        ]
    return _around(node, request, topics)


def _around(
    node: Node, request: MetadataRequest, topics: list[MetadataResponseTopic] | Encoded
) -> MetadataResponse:
    """Return a response with these topics."""
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in node.brokers
        ],
        cluster_id=node.image.cluster_id,
        controller_id=controller_of(node),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _find(
    node: Node,
    wanted: MetadataRequestTopic,
    operations: int | None,
    refused: dict[str, ErrorCode],
    *,
    nameless: bool,
) -> MetadataResponseTopic:
    found = _found(node, wanted, nameless=nameless)
    if found is not None:
        return _describe(node, found, operations)
    if _by_id(wanted) or wanted.name is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if nameless else ErrorCode.INVALID_REQUEST
        name = None if nameless else ""
        return MetadataResponseTopic(error_code=code, name=name, topic_id=wanted.topic_id)
    code = refused.get(wanted.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        check_name(wanted.name)
    except ApiError as error:
        code = error.code
    unknown = MetadataResponseTopic(error_code=code, name=wanted.name, topic_id=NO_TOPIC_ID)
    if operations is not None:
        unknown.topic_authorized_operations = operations
    return unknown


def _found(node: Node, wanted: MetadataRequestTopic, *, nameless: bool) -> TopicImage | None:
    """Return a topic that is asked for, if it exists and the response can contain it."""
    if _by_id(wanted):
        return node.image.topic_by_id(wanted.topic_id) if nameless else None
    return _by_name(node, wanted)


def controller_of(node: Node) -> int:
    """Return the broker that is the controller, or one that forwards requests to it."""
    controller = node.controller_id
    if controller is not None and controller in node.image.brokers:
        return controller
    return node.node_id if node.is_broker and controller is not None else -1


def _living(node: Node) -> set[int]:
    return {broker.node_id for broker in node.brokers}


def offline(partition: PartitionImage, living: Container[int]) -> list[int]:
    """Return the replicas that cannot be reached."""
    return [replica for replica in partition.replicas if replica not in living]


def trouble(partition: PartitionImage) -> ErrorCode:
    """Return the error with which a partition is described: some have no leader."""
    return ErrorCode.LEADER_NOT_AVAILABLE if partition.leader < 0 else ErrorCode.NONE


def _describe(node: Node, topic: TopicImage, operations: int | None) -> MetadataResponseTopic:
    living = _living(node)
    partitions = [
        _partition(index, partition, living)
        for index, partition in enumerate(node.replicas.newest(topic))
    ]
    return _described(topic, partitions, operations)


def _partition(
    index: int, partition: PartitionImage, living: Container[int]
) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline(partition, living),
        error_code=trouble(partition),
    )


def _described(
    topic: TopicImage,
    partitions: list[MetadataResponsePartition] | Encoded,
    operations: int | None,
) -> MetadataResponseTopic:
    described = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
    )
    if operations is not None:
        described.topic_authorized_operations = operations
    return described
