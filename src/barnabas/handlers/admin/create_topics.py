"""CreateTopics (key 19), versions 2 to 7.

The request or the controller places the replicas; -1 stands for the default. A client over its
`controller_mutation_rate` gets THROTTLING_QUOTA_EXCEEDED from version 6 on (`mutation_permits.py`).

A broker that creates a topic automatically adds the config `barnabas.replication.factor` (from
feature level 2 on): the topic gets as many replicas as brokers are up, and grows to that factor
later.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from barnabas.controller import topic_decisions as topics
from barnabas.controller.growth import Factor
from barnabas.controller.placement import leave_out_inactive
from barnabas.handlers.admin.mutation_permits import MutationPermits
from barnabas.handlers.answers import in_parts, once
from barnabas.handlers.authorization import (
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_CONFIGS_TOPIC,
    NO_NAMES,
    denied_among,
    is_hidden,
)
from barnabas.handlers.context import RequestContext
from barnabas.metadata import topic_config
from barnabas.metadata.metadata_records import MetadataRecord, TopicCreated
from barnabas.metadata.topic_config import WANTED_FACTOR
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.steps import Steps
from barnabas.node.node import Node
from barnabas.protocol.codec import encoder
from barnabas.protocol.message import Encoded
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

DYNAMIC_TOPIC_CONFIG = 1
DEFAULT_CONFIG = 5
DECIDED_AN_EVENT = 10
STRICT_FROM = 6
"""How many topics are decided on within one event, and committed together."""

Results = list[Any]
"""Results. They are encoded one by one if the request names more topics than that, since encoding
them together would take long. A request of this broker to itself names one topic."""


def handle(
    node: Node, request: CreateTopicsRequest, context: RequestContext
) -> Pending[CreateTopicsResponse]:
    """Create the valid topics; refuse the others."""
    made = in_parts(node, _parts(node, request, context), context)
    if len(request.topics) > DECIDED_AN_EVENT:
        return made.map(lambda results: CreateTopicsResponse(topics=Encoded(results)))
    return made.map(lambda results: CreateTopicsResponse(topics=results))


def _parts(
    node: Node, request: CreateTopicsRequest, context: RequestContext
) -> Steps[list[Results | Pending[Results]]]:
    """Decide on some topics within one event; each part is committed on its own."""
    times = Counter(topic.name for topic in request.topics)
    denied = NO_NAMES
    if is_hidden(node, context, CREATE_CLUSTER):
        denied = denied_among(node, context, CREATE_TOPIC, times)
    encode = encoder(CreatableTopicResult, context.version)
    is_large = len(request.topics) > DECIDED_AN_EVENT
    permits = MutationPermits(
        node, context, strict_from=STRICT_FROM, is_dry_run=request.validate_only
    )
    room = _Room(node, permits)
    parts: list[Results | Pending[Results]] = []
    for start in range(0, len(request.topics), DECIDED_AN_EVENT):
        if start:
            yield None
        wanted = request.topics[start : start + DECIDED_AN_EVENT]
        results, records = _decide_on(node, wanted, times, denied, room)
        for result in results:
            if is_hidden(node, context, DESCRIBE_CONFIGS_TOPIC, result.name):
                _hide_configs(result)
        committed = Pending.of(None)
        try:  # a refusal may depend on proposed records, and waits until they are committed
            committed = node.commit(() if request.validate_only else records, context.now_ms)
        except ApiError as error:
            results = [_refused(topic.name, error) for topic in wanted]
        answers: Results = [encode(result) for result in results] if is_large else results
        parts.append(once(committed, answers))
    return parts


class _Room:
    """Counts the partitions of a request until they count as open partitions of the broker."""

    def __init__(self, node: Node, permits: MutationPermits) -> None:
        self._node = node
        self._permits = permits
        self._open_before = len(node.partitions)
        self._decided = 0

    def take(self, count: int) -> None:
        """Count some more, or refuse them if they exceed the limit or the client's quota."""
        opened = max(0, len(self._node.partitions) - self._open_before)
        self._node.check_room(max(0, self._decided - opened) + count)
        self._permits.take(count)
        self._decided += count


def _decide_on(
    node: Node,
    wanted: Sequence[CreatableTopic],
    times: Counter[str],
    denied: frozenset[str],
    room: _Room,
) -> tuple[list[CreatableTopicResult], list[MetadataRecord]]:
    results, records = list[CreatableTopicResult](), list[MetadataRecord]()
    for topic in wanted:
        try:
            if times[topic.name] > 1:
                raise ApiError(  # noqa: TRY301
                    ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named more than once"
                )
            if topic.name in denied:
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # noqa: TRY301
            record = _decide(node, topic)
            room.take(len(record.replicas))
        except ApiError as error:
            results.append(_refused(topic.name, error))
            continue
        records.append(record)
        records += leave_out_inactive(node.draft, record.topic_id, record.replicas)
        results.append(_created(node, record))
    return results, records


def _hide_configs(result: CreatableTopicResult) -> None:
    """Remove from a result what a caller without DESCRIBE_CONFIGS on the topic must not see."""
    if result.error_code:
        return
    result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    result.num_partitions = result.replication_factor = -1
    result.configs = []


def _refused(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _decide(node: Node, topic: CreatableTopic) -> TopicCreated:
    topics.check_name(topic.name)
    config = {}
    for entry in topic.configs:
        if entry.value is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{entry.name} was set to nothing")
        config[entry.name] = entry.value
    if topic.assignments:
        if topic.num_partitions != -1 or topic.replication_factor != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "with replicas placed by hand, partitions and replication factor must be -1",
            )
        placed = {a.partition_index: a.broker_ids for a in topic.assignments}
        if len(placed) < len(topic.assignments):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is placed more than once"
            )
        topics.check_placement(placed, [NodeId(broker) for broker in node.draft.brokers])
        factor = Factor(0, 0)
        replicas = [placed[index] for index in range(len(placed))]
    else:
        factor = _factor(node, topic, config)
        partitions = topic.num_partitions
        if partitions == -1:
            partitions = node.settings.broker.default_partitions
        replicas = node.place(partitions, factor.placed)
    return topics.create_topic(
        node.draft,
        topic.name,
        replicas,
        node.settled_config(config),
        node.topic_defaults,
        node.rng,
        replication_factor=factor.wanted,
    )


def _factor(node: Node, topic: CreatableTopic, config: dict[str, str]) -> Factor:
    """Return how many replicas a topic gets; remove the config that says so from the others."""
    replicas = topic.replication_factor
    if replicas == -1:
        replicas = node.settings.replication.default_replication_factor
    if config.get(WANTED_FACTOR) != str(replicas) or not node.creation.remembers_factors:
        return Factor(replicas, 0)  # the config, if present, is refused later
    del config[WANTED_FACTOR]
    return node.creation.factor(replicas)


def _created(node: Node, record: TopicCreated) -> CreatableTopicResult:
    defaults = node.topic_defaults
    return CreatableTopicResult(
        name=record.name,
        topic_id=bytes.fromhex(record.topic_id),
        error_message=None,
        num_partitions=len(record.replicas),
        replication_factor=len(record.replicas[0]),
        configs=[
            CreatableTopicConfigs(
                name=name,
                value=record.config.get(name, defaults.get(name, known.default)),
                config_source=DYNAMIC_TOPIC_CONFIG if name in record.config else DEFAULT_CONFIG,
            )
            for name, known in topic_config.DEFINITIONS.items()
        ],
    )
