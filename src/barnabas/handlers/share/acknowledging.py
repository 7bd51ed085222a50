"""Acknowledgements of share groups: ShareFetch carries them as well as ShareAcknowledge."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Protocol

from barnabas.handlers.authorization import READ_TOPIC, require, topic_name
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.node.share.share_sessions import Owner, Place
from barnabas.share.window import Acknowledgement, AcknowledgeType

RENEW_FROM = 2
"""The first version in which a member may ask for more time."""
OFFSETS_MAX = 100_000
"""How many offsets one batch of acknowledgements may have one by one."""

Results = dict[Place, ErrorCode]


class AckBatch(Protocol):
    """A run of offsets in a request, with one answer for all or one for each."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class AckPartition(Protocol):
    """A partition in a request."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[AckBatch]:
        """The answers, in the order of the offsets."""


class AckTopic(Protocol):
    """A topic in a request."""

    topic_id: bytes

    @property
    def partitions(self) -> Sequence[AckPartition]:
        """Its partitions."""


def acknowledge(
    node: Node, context: RequestContext, owner: Owner, topics: Iterable[AckTopic]
) -> Pending[Results]:
    """Store what a member says of its records; answer with a code for each partition it names."""
    waits: dict[Place, Pending[None]] = {}
    results: Results = {}
    for place, batches in batches_by_place(topics):
        if not batches:
            continue
        results[place] = ErrorCode.NONE
        try:
            name = topic_name(node, place.topic_id)
            if name is not None:
                require(node, context, READ_TOPIC, name)
            acks = runs_of(batches, can_renew=context.version >= RENEW_FROM)
            partition = node.sharing.partitions.known(owner.group_id, place)
            waits[place] = partition.acknowledge(owner.member_id, acks)
        except ApiError as error:
            results[place] = error.code
    return _gathered(waits, results)


def batches_by_place(topics: Iterable[AckTopic]) -> Iterator[tuple[Place, Sequence[AckBatch]]]:
    """Yield every partition of a request with its answers."""
    for topic in topics:
        for each in topic.partitions:
            place = Place(TopicId(topic.topic_id), each.partition_index)
            yield place, each.acknowledgement_batches


def runs_of(batches: Iterable[AckBatch], *, can_renew: bool) -> list[Acknowledgement]:
    """Return runs of offsets with the same answer; raise `ApiError` if a batch is invalid.

    Neighbouring batches with the same answer become one run: members that acknowledge records one
    by one cost little more than those that do not.
    """
    found: list[Acknowledgement] = []
    for batch in batches:
        for run in _runs(batch, can_renew=can_renew):
            before = found[-1] if found else None
            if before is not None and (before.last + 1, before.kind) == (run.first, run.kind):
                found[-1] = Acknowledgement(before.first, run.last, run.kind)
            else:
                found.append(run)
    return found


def _runs(batch: AckBatch, *, can_renew: bool) -> Iterator[Acknowledgement]:
    first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
    count = last - first + 1
    if count < 1 or len(types) not in (1, count) or len(types) > OFFSETS_MAX:
        problem = f"{len(types)} acknowledgements for the offsets {first} to {last}"
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    if len(types) == 1:
        yield Acknowledgement(first, last, _kind(types[0], can_renew=can_renew))
        return
    for number, equal in groupby(types):
        following = first + sum(1 for _ in equal)
        yield Acknowledgement(first, following - 1, _kind(number, can_renew=can_renew))
        first = following


def _kind(number: int, *, can_renew: bool) -> AcknowledgeType:
    if not 0 <= number <= (AcknowledgeType.RENEW if can_renew else AcknowledgeType.REJECT):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{number} is no type of acknowledgement")
    return AcknowledgeType(number)


def _gathered(waits: dict[Place, Pending[None]], results: Results) -> Pending[Results]:
    """Return the codes of all partitions once each is known."""
    answer: Pending[Results] = Pending()
    left = len(waits)

    def finish(place: Place, code: ErrorCode) -> None:
        nonlocal left
        results[place] = code
        left -= 1
        if not left:
            answer.complete(results)

    if not waits:
        answer.complete(results)
    for place, wait in waits.items():
        wait.when_done(
            lambda _, place=place: finish(place, ErrorCode.NONE),  # type: ignore[misc]
            lambda error, place=place: finish(place, _code(error)),  # type: ignore[misc]
        )
    return answer


def _code(error: Exception) -> ErrorCode:
    return error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
