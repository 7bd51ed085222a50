"""Metadata (key 3), versions 0 to 13: topics by name or id, and automatic creation.

A topic that is created automatically is in the response at once. Kafka answers
LEADER_NOT_AVAILABLE, and the client retries. If another broker leads it, that broker may learn of
it a little later. The response names the controller if it is a broker; any broker forwards requests
to it.

With an authorizer, a list of all topics omits those that the caller may not describe. In a request
by name they are TOPIC_AUTHORIZATION_FAILED with a zero id, even if they do not exist; in a request
by id they have no name.
"""

from collections.abc import Container

from barnabas.controller.topic_decisions import check_name
from barnabas.handlers.answers import all_of, in_steps
from barnabas.handlers.authorization import (
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC,
    NO_NAMES,
    denied_among,
    is_hidden,
    operations,
)
from barnabas.handlers.client_endpoints import Reach, endpoint_on, reach_on
from barnabas.handlers.context import RequestContext
from barnabas.metadata.image import PartitionImage, TopicImage
from barnabas.model.callers import Listener
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.model.pending import Pending
from barnabas.model.permissions import ResourceType
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
"""Requests have ids from version 10 on, but only from this one on may a response omit a name."""
LISTENER_NOT_FOUND_FROM = 6
"""Clients of earlier versions get LEADER_NOT_AVAILABLE, which they retry as well."""
AT_ONCE_MAX = 500
"""How many topics and partitions are described without steps."""
UNITS = 8
"""The cost of describing one of them."""


def handle(
    node: Node, request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Pending[MetadataResponse]:
    """Describe the brokers and the topics asked for; from version 1 on none means all."""
    sight = Sight(node, request, context)
    refused: dict[str, ErrorCode] = {}
    making = [
        _make(node, name, context, refused)
        for name in _to_create(node, request, context)
        if name not in sight.denied
    ]
    if not making:
        if _count(_asked(node, request, context)) > AT_ONCE_MAX:
            return in_steps(node, _in_steps(node, request, context, sight), context)
        return _response(node, request, context, sight, refused)
    return all_of(list[Pending[None] | None](making)).map(
        lambda _: _response(node, request, context, sight, refused)
    )


class Sight:
    """The topics that the caller may see, decided when its request arrives."""

    def __init__(self, node: Node, request: MetadataRequest, context: RequestContext) -> None:
        self._node = node
        self._context = context
        self._tells_operations = request.include_topic_authorized_operations
        self.denied: frozenset[str] = NO_NAMES
        """The names of topics that are asked for and that the caller may not describe."""
        if not _wants_all(request, context):
            named = (_name_of(node, topic) for topic in request.topics or ())
            names = (name for name in named if name is not None)
            self.denied = denied_among(node, context, DESCRIBE_TOPIC, names)

    def everything(self) -> list[TopicImage]:
        """Return all topics that the caller may describe."""
        node, context = self._node, self._context
        topics = list(node.image.topics.values())
        if node.authorizer is None:
            return topics
        return [each for each in topics if not is_hidden(node, context, DESCRIBE_TOPIC, each.name)]

    def operations_on(self, name: str) -> int | None:
        """Return what the caller may do to a topic, if the request asks for that."""
        if not self._tells_operations:
            return None
        return operations(self._node, self._context, ResourceType.TOPIC, name)


def _count(topics: list[TopicImage]) -> int:
    """Return how many topics and partitions are to be described."""
    return sum(1 + len(topic.partitions) for topic in topics)


def _in_steps(
    node: Node, request: MetadataRequest, context: RequestContext, sight: Sight
) -> Steps[MetadataResponse]:
    """Describe the topics asked for, each in its state at that time."""
    encode_topic = encoder(MetadataResponseTopic, context.version)
    encode_partition = encoder(MetadataResponsePartition, context.version)
    nameless = context.version >= NAMELESS_FROM
    version, listener = context.version, context.caller.listener
    work, topics, reach = Work(), Encoded(), reach_on(node, listener)
    every = _wants_all(request, context)
    for each in sight.everything() if every else request.topics or ():
        topic = each if isinstance(each, TopicImage) else _found(node, each, nameless=nameless)
        if topic is None or topic.name in sight.denied:
            assert isinstance(each, MetadataRequestTopic)
            topics.append(encode_topic(_find(node, each, sight, {}, context)))
            continue
        partitions = Encoded()
        for index, partition in enumerate(node.replicas.newest(topic)):
            partitions.append(encode_partition(_partition(index, partition, reach, version)))
            if work.spend(UNITS):
                yield None
                reach = reach_on(node, listener)
        told = sight.operations_on(topic.name)
        topics.append(encode_topic(_described(node, topic, partitions, told)))
        if work.spend(UNITS):
            yield None
    return _around(node, request, context, topics)


def _make(
    node: Node, name: str, context: RequestContext, refused: dict[str, ErrorCode]
) -> Pending[None]:
    """Create a topic automatically; a refusal is part of the response."""

    def refuse(code: ErrorCode) -> None:
        refused[name] = code

    may_create_any = not is_hidden(node, context, CREATE_CLUSTER)
    if not may_create_any and denied_among(node, context, CREATE_TOPIC, [name]):
        refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return Pending.of(None)
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


def _name_of(node: Node, topic: MetadataRequestTopic) -> str | None:
    """Return the name of a topic that is asked for by name or id; None for an unknown id."""
    if not _by_id(topic):
        return topic.name
    found = node.image.topic_by_id(topic.topic_id)
    return None if found is None else found.name


def _by_name(node: Node, topic: MetadataRequestTopic) -> TopicImage | None:
    return None if topic.name is None else node.image.topics.get(topic.name)


def _wants_all(request: MetadataRequest, context: RequestContext) -> bool:
    return request.topics is None or (context.version == 0 and not request.topics)


def _response(
    node: Node,
    request: MetadataRequest,
    context: RequestContext,
    sight: Sight,
    refused: dict[str, ErrorCode],
) -> MetadataResponse:
    if _wants_all(request, context):
        every = sight.everything()
        topics = [
            _describe(node, topic, sight.operations_on(topic.name), context) for topic in every
        ]
    else:
        topics = [_find(node, topic, sight, refused, context) for topic in request.topics or ()]
    return _around(node, request, context, topics)


def _around(
    node: Node,
    request: MetadataRequest,
    context: RequestContext,
    topics: list[MetadataResponseTopic] | Encoded,
) -> MetadataResponse:
    """Return a response with these topics."""
    listener = context.caller.listener
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.node_id, host=endpoint[0], port=endpoint[1], rack=broker.rack
            )
            for broker in node.brokers
            if (endpoint := endpoint_on(node, broker, listener)) is not None
        ],
        cluster_id=node.image.cluster_id,
        controller_id=controller_of(node, listener),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(node, context)
    return response


def cluster_operations(node: Node, context: RequestContext) -> int:
    """Return what the caller may do to the cluster, as bits; 0 if it may not describe it."""
    if is_hidden(node, context, DESCRIBE_CLUSTER):
        return 0
    return operations(node, context, ResourceType.CLUSTER)


def _find(
    node: Node,
    wanted: MetadataRequestTopic,
    sight: Sight,
    refused: dict[str, ErrorCode],
    context: RequestContext,
) -> MetadataResponseTopic:
    nameless = context.version >= NAMELESS_FROM
    found = _found(node, wanted, nameless=nameless)
    if found is not None and found.name not in sight.denied:
        return _describe(node, found, sight.operations_on(found.name), context)
    if found is not None and _by_id(wanted):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return MetadataResponseTopic(error_code=code, name=None, topic_id=wanted.topic_id)
    if _by_id(wanted) or wanted.name is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if nameless else ErrorCode.INVALID_REQUEST
        name = None if nameless else ""
        return MetadataResponseTopic(error_code=code, name=name, topic_id=wanted.topic_id)
    if wanted.name in sight.denied:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return MetadataResponseTopic(error_code=code, name=wanted.name, topic_id=NO_TOPIC_ID)
    code = refused.get(wanted.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        check_name(wanted.name)
    except ApiError as error:
        code = error.code
    unknown = MetadataResponseTopic(error_code=code, name=wanted.name, topic_id=NO_TOPIC_ID)
    told = sight.operations_on(wanted.name)
    if told is not None:
        unknown.topic_authorized_operations = told
    return unknown


def _found(node: Node, wanted: MetadataRequestTopic, *, nameless: bool) -> TopicImage | None:
    """Return a topic that is asked for, if it exists and the response can contain it."""
    if _by_id(wanted):
        return node.image.topic_by_id(wanted.topic_id) if nameless else None
    return _by_name(node, wanted)


def controller_of(node: Node, listener: Listener) -> int:
    """Return the broker that is the controller, or one that forwards requests to it."""
    controller = node.controller_id
    broker = None if controller is None else node.image.brokers.get(controller)
    if broker is not None and endpoint_on(node, broker, listener) is not None:
        return broker.node_id
    return node.node_id if node.is_broker and controller is not None else -1


def offline(partition: PartitionImage, living: Container[int]) -> list[int]:
    """Return the replicas that cannot be reached."""
    return [replica for replica in partition.replicas if replica not in living]


def leader_for(partition: PartitionImage, reach: Reach) -> int:
    """Return the leader; -1 if it does not have the client's listener."""
    return -1 if partition.leader in reach.lacking else partition.leader


def trouble(partition: PartitionImage, reach: Reach, version: int) -> ErrorCode:
    """Return the error of a partition in the response: some have no leader for this client."""
    if partition.leader in reach.lacking and version >= LISTENER_NOT_FOUND_FROM:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE if leader_for(partition, reach) < 0 else ErrorCode.NONE


def _describe(
    node: Node, topic: TopicImage, told: int | None, context: RequestContext
) -> MetadataResponseTopic:
    reach = reach_on(node, context.caller.listener)
    partitions = [
        _partition(index, partition, reach, context.version)
        for index, partition in enumerate(node.replicas.newest(topic))
    ]
    return _described(node, topic, partitions, told)


def _partition(
    index: int, partition: PartitionImage, reach: Reach, version: int
) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=index,
        leader_id=leader_for(partition, reach),
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline(partition, reach.living),
        error_code=trouble(partition, reach, version),
    )


def _described(
    node: Node,
    topic: TopicImage,
    partitions: list[MetadataResponsePartition] | Encoded,
    told: int | None,
) -> MetadataResponseTopic:
    described = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=node.is_internal(topic),
        partitions=partitions,
    )
    if told is not None:
        described.topic_authorized_operations = told
    return described
