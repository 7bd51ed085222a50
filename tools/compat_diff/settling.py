"""Waits until a broker has carried out what it acknowledged.

Kafka answers CreateTopics when its controller has decided; its broker opens the logs a moment
later. Clients wait for that by requesting metadata. The tool does the same with both brokers before
the next step.
"""

import time
from collections.abc import Iterator

from barnabas.model.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tools.compat_diff.sides import Request, Side
from tools.compat_diff.steps import Answer, Ask

PATIENCE_S = 5.0
PAUSE_S = 0.01
CONFIG_PAUSE_S = 0.06
LATEST = -1
SETTLING = "settling"
"""The connection for requests that are not part of the dialogue."""
BEHIND = (
    "AlterConfigsRequest",
    "IncrementalAlterConfigsRequest",
    "AlterPartitionReassignmentsRequest",
    "ElectLeadersRequest",
)
"""Requests whose effect on the broker no other request shows."""


def settle(side: Side, step: Request, answer: Answer) -> None:
    """Wait until the broker serves what it has acknowledged."""
    request = step.request
    if answer.message is None or request is None:
        return
    if type(request).__name__ in BEHIND:
        time.sleep(CONFIG_PAUSE_S)
    elif isinstance(request, MetadataRequest) and step.version > 0:
        _wait_created(side, list(_made_on_demand(answer.message)))
    elif getattr(request, "validate_only", False):
        return
    elif isinstance(request, CreateTopicsRequest):
        _wait_created(side, list(_succeeded(answer.message, "topics")))
    elif isinstance(request, CreatePartitionsRequest):
        _wait_created(side, list(_succeeded(answer.message, "results")))
        time.sleep(CONFIG_PAUSE_S)
    elif isinstance(request, DeleteTopicsRequest):
        _wait_deleted(side, list(_succeeded(answer.message, "responses")))


def _succeeded(answer: Message, array: str) -> Iterator[str]:
    for result in getattr(answer, array):
        if result.error_code == 0 and result.name:
            yield result.name


def _made_on_demand(answer: Message) -> Iterator[str]:
    """Return topics that Kafka is creating: it returns LEADER_NOT_AVAILABLE, or UNKNOWN_TOPIC."""
    for topic in getattr(answer, "topics", []):
        if topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE and topic.name:
            yield topic.name


def _wait_created(side: Side, names: list[str]) -> None:
    """Wait until every partition of the topics returns its end offset."""
    deadline = time.monotonic() + PATIENCE_S
    for name in names:
        while time.monotonic() < deadline:
            count = _partition_count(side, name)
            if count and _is_served(side, name, count):
                break
            time.sleep(PAUSE_S)


def _wait_deleted(side: Side, names: list[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    for name in names:
        while time.monotonic() < deadline and _partition_count(side, name):
            time.sleep(PAUSE_S)
    if names:
        time.sleep(PAUSE_S)


def _partition_count(side: Side, name: str) -> int:
    topics = [MetadataRequestTopic(name=name)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer = side.ask(Ask(request, 9, SETTLING)).message
    described = getattr(answer, "topics", [])
    return len(described[0].partitions) if described else 0


def _is_served(side: Side, name: str, count: int) -> bool:
    wanted = [ListOffsetsPartition(partition_index=n, timestamp=LATEST) for n in range(count)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=wanted)]
    )
    answer = side.ask(Ask(request, 5, SETTLING)).message
    return all(p.error_code == 0 for t in getattr(answer, "topics", []) for p in t.partitions)
