"""The requests to share coordinators on other brokers, and what their responses say.

A kind is one row: the operation on a coordinator of this broker, and the same as a request and its
response. All requests look alike: they name one group, and list partitions by topic.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.share_state import (
    DeliveryState,
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StateUpdate,
    StoredState,
)
from barnabas.node.share.share_coordinators import Items, Operation
from barnabas.protocol.message import Message
from barnabas.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from barnabas.share import shipments
from barnabas.share.share_state_machine import Results, ShareStateMachine

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRequest(Generic[Q, R]):
    """One kind of request to share coordinators."""

    name: str
    operation: Operation[Q, R]
    request: Callable[..., Message]
    topic: Callable[..., Message]
    partition: Callable[[int, Q], Message]
    result: Callable[[Any], R]
    """Reads the result of one partition in a response."""

    def message(self, group_id: str, items: Items[Q]) -> Message:
        """Return the request for share partitions of one group."""
        topics: dict[TopicId, list[Message]] = {}
        for key, item in items.items():
            topics.setdefault(key.topic_id, []).append(self.partition(key.partition, item))
        listed = [self.topic(topic_id=each, partitions=parts) for each, parts in topics.items()]
        return self.request(group_id=group_id, topics=listed)

    def results(self, group_id: str, response: Any) -> Results[R]:  # noqa: ANN401 - of any kind
        """Return what a response says about each share partition."""
        found: Results[R] = {}
        for topic in response.results:
            for part in topic.partitions:
                key = SharePartitionKey(group_id, TopicId(bytes(topic.topic_id)), part.partition)
                found[key] = self._result(part)
        return found

    def _result(self, part: Any) -> R | ApiError:  # noqa: ANN401 - of any kind
        if part.error_code:
            return ApiError(ErrorCode(part.error_code), part.error_message)
        try:
            return self.result(part)
        except ValueError as error:
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"invalid response: {error}")


def by_group(items: Items[Q]) -> Mapping[str, Items[Q]]:
    """Return items by their group."""
    groups: dict[str, dict[SharePartitionKey, Q]] = {}
    for key, item in items.items():
        groups.setdefault(key.group_id, {})[key] = item
    return groups


def _written(number: int, update: StateUpdate) -> Message:
    return write_share_group_state.PartitionData(
        partition=number,
        state_epoch=update.state_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.complete_count,
        state_batches=[
            write_share_group_state.StateBatch(
                first_offset=batch.first,
                last_offset=batch.last,
                delivery_state=int(batch.state),
                delivery_count=batch.deliveries,
            )
            for batch in update.batches
        ],
        shipment=shipments.as_message(
            write_share_group_state.Shipment, write_share_group_state.ShipmentRun, update.shipment
        ),
    )


def _stored(part: read_share_group_state.PartitionResult) -> StoredState:
    batches = [
        StateBatch(
            each.first_offset,
            each.last_offset,
            DeliveryState(each.delivery_state),
            each.delivery_count,
        )
        for each in part.state_batches
    ]
    shipment = shipments.from_message(part.shipment)
    return StoredState(part.state_epoch, part.start_offset, batches, shipment)


def _summary(part: read_share_group_state_summary.PartitionResult) -> StateSummary:
    return StateSummary(
        part.state_epoch, part.leader_epoch, part.start_offset, part.delivery_complete_count
    )


INITIALIZE: StateRequest[tuple[int, int], None] = StateRequest(
    name="initialize",
    operation=ShareStateMachine.initialize,
    request=initialize_share_group_state.InitializeShareGroupStateRequest,
    topic=initialize_share_group_state.InitializeStateData,
    partition=lambda number, start: initialize_share_group_state.PartitionData(
        partition=number, state_epoch=start[0], start_offset=start[1]
    ),
    result=lambda _: None,
)
READ: StateRequest[int, StoredState] = StateRequest(
    name="read",
    operation=ShareStateMachine.read,
    request=read_share_group_state.ReadShareGroupStateRequest,
    topic=read_share_group_state.ReadStateData,
    partition=lambda number, epoch: read_share_group_state.PartitionData(
        partition=number, leader_epoch=epoch
    ),
    result=_stored,
)
WRITE: StateRequest[StateUpdate, None] = StateRequest(
    name="write",
    operation=ShareStateMachine.write,
    request=write_share_group_state.WriteShareGroupStateRequest,
    topic=write_share_group_state.WriteStateData,
    partition=_written,
    result=lambda _: None,
)
DELETE: StateRequest[None, None] = StateRequest(
    name="delete",
    operation=ShareStateMachine.delete,
    request=delete_share_group_state.DeleteShareGroupStateRequest,
    topic=delete_share_group_state.DeleteStateData,
    partition=lambda number, _: delete_share_group_state.PartitionData(partition=number),
    result=lambda _: None,
)
SUMMARIZE: StateRequest[int, StateSummary] = StateRequest(
    name="summarize",
    operation=ShareStateMachine.summarize,
    request=read_share_group_state_summary.ReadShareGroupStateSummaryRequest,
    topic=read_share_group_state_summary.ReadStateSummaryData,
    partition=lambda number, epoch: read_share_group_state_summary.PartitionData(
        partition=number, leader_epoch=epoch
    ),
    result=_summary,
)
