"""Checks what members of share groups were promised, by the responses that brokers send.

Each delivery of an offset has a place in one order: by the leader epoch of its partition, the life
of the broker, and its delivery count. From this order the checks tell, without clocks, that an
offset was given to two members at a time, or again after an accept or a reject was answered. Times
show the rest: what a member holds is not given to others before its time has passed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.node.share.share_sessions import Place
from barnabas.share.window import AcknowledgeType
from barnabas.sim.network import Link
from barnabas.sim.world import InvariantError

FINAL = (AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)
"""Acknowledgements after which an offset is never delivered again."""
UNCHANGED = (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
"""Errors that refuse the acknowledgements of a partition before anything changes."""


class Spot(NamedTuple):
    """An offset as one share group sees it."""

    group_id: str
    place: Place
    offset: int

    def __str__(self) -> str:
        topic_id, partition = self.place
        return f"{self.group_id} {topic_id[:2].hex()}-{partition}@{self.offset}"


class Order(NamedTuple):
    """Where a delivery stands among all deliveries of its spot."""

    leader_epoch: int
    life: int
    deliveries: int


@dataclass(eq=False)
class Delivery:
    """An offset that a broker gave to a member."""

    spot: Spot
    order: Order
    member: str
    link: Link
    answered_ms: int
    until_ms: int
    """The member certainly holds the offset until then, while its connection is open."""

    def is_held(self, now_ms: int) -> bool:
        """Return whether the member certainly holds the offset still."""
        return now_ms < self.until_ms and self.link.is_open


class Ack(NamedTuple):
    """What a member says of one offset, and which delivery it means, if any."""

    offset: int
    kind: AcknowledgeType
    delivery: Delivery | None


@dataclass(eq=False)
class Attempt:
    """The acknowledgements of a request for one partition."""

    group_id: str
    place: Place
    acks: list[Ack]
    sent_ms: int
    held_until_ms: list[int]
    """Until when the member held each offset as far as it knew; 0 if it did not."""
    is_certain: bool
    """Whether the member certainly held every offset when it sent the request."""
    is_final: bool = False
    """Whether the session ends with the request, and with it all that the member holds."""


class Answered(NamedTuple):
    """Where and when a broker answered."""

    now_ms: int
    leader_epoch: int | None
    """None if the broker does not lead the partition any more."""
    life: int
    start: int | None
    """The start offset of the share partition; None if the broker has none."""


class ShareChecks:
    """Everything that members of share groups were given, and what they said of it."""

    def __init__(self) -> None:
        self.values: dict[tuple[Place, int], str] = {}
        """The record that members got at each offset."""
        self.delivered = 0
        self.finished: dict[Spot, Order] = {}
        """The delivery that a final acknowledgement ended, which a broker answered."""
        self._newest: dict[Spot, Delivery] = {}
        self._of_member: dict[tuple[Spot, str], Delivery] = {}
        self._by_link: dict[Link, list[Delivery]] = {}

    def newest_of(self, spot: Spot, member: str) -> Delivery | None:
        """Return the last delivery of an offset to a member."""
        return self._of_member.get((spot, member))

    def deliver(self, delivery: Delivery, *, sent_ms: int, deliveries_max: int) -> None:
        """Check a delivery that a broker answers with."""
        spot, order = delivery.spot, delivery.order
        self.delivered += 1
        if not 1 <= order.deliveries <= deliveries_max:
            raise InvariantError(f"{spot} has the delivery count {order.deliveries}")
        finished = self.finished.get(spot)
        if finished is not None and order > finished:
            raise InvariantError(
                f"{spot} is delivered to {delivery.member} as {order}, but a final "
                f"acknowledgement of {finished} was answered"
            )
        newest = self._newest.get(spot)
        if newest is not None and order == newest.order:
            raise InvariantError(
                f"{spot} is delivered to {delivery.member} and to {newest.member} as {order}"
            )
        if newest is None or order > newest.order:
            self._check_free(newest, delivery, sent_ms)
            self._newest[spot] = delivery
        self._of_member[spot, delivery.member] = delivery
        self._by_link.setdefault(delivery.link, []).append(delivery)

    def give_back(self, link: Link, now_ms: int) -> None:
        """Record that a member is about to end its session on a connection."""
        for delivery in self._by_link.pop(link, ()):
            delivery.until_ms = min(delivery.until_ms, now_ms)

    def show(self, partition: TopicPartition, place: Place, offset: int, value: str) -> None:
        """Check the record that a member gets at an offset."""
        known = self.values.setdefault((place, offset), value)
        if known != value:
            raise InvariantError(f"{partition} has {value} at {offset}, and had {known} before")

    def attempt(
        self, group_id: str, place: Place, acks: list[Ack], member: str, now_ms: int
    ) -> Attempt:
        """Record acknowledgements before they are sent: they may end what the member holds."""
        held = [0 if ack.delivery is None else ack.delivery.until_ms for ack in acks]
        is_certain = all(
            ack.delivery is not None
            and ack.delivery.is_held(now_ms)
            and ack.delivery is self._newest[ack.delivery.spot]
            for ack in acks
        )
        for ack in acks:
            found = self._of_member.get((Spot(group_id, place, ack.offset), member))
            if found is not None:
                found.until_ms = min(found.until_ms, now_ms)
        return Attempt(group_id, place, acks, now_ms, held, is_certain)

    def acknowledged(
        self, attempt: Attempt, code: ErrorCode, member: str, at: Answered, lock_ms: int
    ) -> None:
        """Check the answer of a broker to acknowledgements."""
        if code is ErrorCode.NONE:
            for ack in attempt.acks:
                self._succeeded(attempt, ack, member, at, lock_ms)
        elif code in UNCHANGED:
            self._check_refusal(attempt, code, at)
            for ack, until_ms in zip(attempt.acks, attempt.held_until_ms, strict=True):
                if ack.delivery is not None and not attempt.is_final:  # nothing has changed
                    ack.delivery.until_ms = max(ack.delivery.until_ms, until_ms)

    def check_values(self, wanted: Place, truth: Mapping[int, str]) -> None:
        """Check that members got the records of a partition that are known in the end."""
        for (place, offset), value in self.values.items():
            if place == wanted and truth.get(offset, value) != value:
                raise InvariantError(
                    f"a member got {value} at {offset} of {place}, but the log has {truth[offset]}"
                )

    def _check_free(self, before: Delivery | None, now: Delivery, sent_ms: int) -> None:
        """Check that the member before did not hold an offset when another one acquired it."""
        if before is None or before.order[:2] != now.order[:2]:
            return
        if before.answered_ms < sent_ms and before.is_held(now.answered_ms + 1):
            raise InvariantError(
                f"{now.spot} is delivered to {now.member} as {now.order}, but {before.member} "
                f"holds {before.order} until {before.until_ms}"
            )

    def _succeeded(
        self, attempt: Attempt, ack: Ack, member: str, at: Answered, lock_ms: int
    ) -> None:
        spot = Spot(attempt.group_id, attempt.place, ack.offset)
        delivery, newest = ack.delivery, self._newest.get(spot)
        is_below = at.start is None or ack.offset < at.start
        if delivery is None or delivery is not newest:
            # Below the start offset an acknowledgement has no effect.
            was_before = newest is None or newest.answered_ms <= attempt.sent_ms
            is_its_own = newest is not None and newest.member == member
            if not (is_below or is_its_own) and (was_before or ack.kind in FINAL):
                held_by = "no member" if newest is None else newest.member
                raise InvariantError(f"{member} may acknowledge {spot}, which {held_by} got last")
            return
        if ack.kind is AcknowledgeType.RENEW:
            if delivery.link.is_open:
                delivery.until_ms = max(delivery.until_ms, attempt.sent_ms + lock_ms)
        elif ack.kind in FINAL:
            self.finished[spot] = delivery.order

    def _check_refusal(self, attempt: Attempt, code: ErrorCode, at: Answered) -> None:
        """Check that a broker does not refuse what a member certainly holds."""
        deliveries = [ack.delivery for ack in attempt.acks if ack.delivery is not None]
        here = (at.leader_epoch, at.life)
        is_certain = attempt.is_certain and all(
            delivery.order[:2] == here and delivery.link.is_open and at.now_ms < until_ms
            for delivery, until_ms in zip(deliveries, attempt.held_until_ms, strict=True)
        )
        if is_certain:
            offsets = [ack.offset for ack in attempt.acks]
            raise InvariantError(
                f"a member holds {offsets} of {attempt.place}, but got {code.name} for them"
            )
