"""One share session with one leader, without sockets (KIP-932).

    none --ShareFetch 0--> open, epoch 1 --ShareFetch n or ShareAcknowledge n--> open, epoch n + 1
    open --ShareAcknowledge -1--> ended;  open --session error, broken connection--> ended

A session begins with a ShareFetch of epoch 0, which carries no acknowledgements. Each later request
names only the partitions that join or leave, and acknowledgements. A session that has ended never
begins again: the leader has given its records to others, so their acknowledgements are lost.

A leader rolls back all acknowledgements that a request has for one partition if one of them is
for a record that the member does not hold any more. So a refused group is sent again in halves,
until only those are lost that have to be. Acknowledgements for a partition that has left go out
with ShareAcknowledge only: a ShareFetch would make the partition join again.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages import share_acknowledge as acknowledging
from barnabas.protocol.messages import share_fetch as fetching
from barnabas.wire.share_values import STORED, Ack, AckKind, FetchLimits, Outcome, Place, Verdict

FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1

Group = dict[int, Ack]
"""Acknowledgements of one partition that go out together, by offset."""

TRY_AGAIN = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
}
"""The leader could not store an acknowledgement now, and the member still holds the record."""


class AckRun(NamedTuple):
    """Neighbouring offsets with the same acknowledgement."""

    first: int
    last: int
    kind: AckKind


class ShareSession:
    """The partitions and acknowledgements of one member at one leader."""

    def __init__(self, group: str, member: str) -> None:
        self._group, self._member = group, member
        self._epoch = 0
        self._joined: set[Place] = set()
        self._groups: dict[Place, deque[Group]] = {}
        self._sent: dict[Place, Group] = {}
        self.wanted: set[Place] = set()
        """The partitions that the member reads at this leader."""
        self.is_ended = False
        self.must_pause = False
        """Whether an acknowledgement was refused for now, and should be sent again later."""

    @property
    def is_open(self) -> bool:
        """Whether the leader knows the session."""
        return self._epoch > 0 and not self.is_ended

    @property
    def has_acks(self) -> bool:
        """Whether acknowledgements wait to be sent."""
        return bool(self._groups)

    @property
    def needs_acknowledge(self) -> bool:
        """Whether acknowledgements wait that no fetch can carry: renewals, or partitions left."""
        return any(
            place not in self.wanted or _renews(groups[0]) for place, groups in self._groups.items()
        )

    def add(self, ack: Ack) -> None:
        """Take an acknowledgement for the next request."""
        if self.is_ended:
            ack.settle(Verdict(Outcome.LOST))
            return
        groups = self._groups.setdefault(ack.place, deque())
        if not groups:
            groups.append({})
        before = groups[-1].get(ack.offset)
        if before is not None:  # a renewal that the final answer makes pointless
            before.settle(STORED)
        groups[-1][ack.offset] = ack

    def fetch(self, limits: FetchLimits) -> fetching.ShareFetchRequest:
        """Return the next fetch, with the acknowledgements that it may carry."""
        acks = self._take(self.wanted, renews=False) if self._epoch else {}
        named = sorted({*(self.wanted - self._joined), *acks})
        gone = sorted(self._joined - self.wanted)
        self._joined = set(self.wanted)
        return fetching.ShareFetchRequest(
            group_id=self._group,
            member_id=self._member,
            share_session_epoch=self._epoch,
            max_wait_ms=limits.max_wait_ms,
            min_bytes=1,
            max_bytes=limits.max_bytes,
            max_records=limits.records,
            batch_size=limits.records,
            share_acquire_mode=int(limits.is_exact),
            topics=[
                fetching.FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        fetching.FetchPartition(
                            partition_index=place.partition,
                            acknowledgement_batches=[
                                fetching.AcknowledgementBatch(
                                    first_offset=run.first,
                                    last_offset=run.last,
                                    acknowledge_types=[run.kind],
                                )
                                for run in runs(acks.get(place, {}))
                            ],
                        )
                        for place in places
                    ],
                )
                for topic_id, places in _by_topic(named)
            ],
            forgotten_topics_data=[
                fetching.ForgottenTopic(
                    topic_id=topic_id, partitions=[place.partition for place in places]
                )
                for topic_id, places in _by_topic(gone)
            ],
        )

    def acknowledge(self, *, is_final: bool = False) -> acknowledging.ShareAcknowledgeRequest:
        """Return the acknowledgements alone; the final request ends the session."""
        assert self.is_open, "a session begins with a fetch"
        acks = self._take(set(self._groups), renews=True)
        return acknowledging.ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member,
            share_session_epoch=FINAL_EPOCH if is_final else self._epoch,
            is_renew_ack=any(_renews(group) for group in acks.values()),
            topics=[
                acknowledging.AcknowledgeTopic(
                    topic_id=topic_id,
                    partitions=[
                        acknowledging.AcknowledgePartition(
                            partition_index=place.partition,
                            acknowledgement_batches=[
                                acknowledging.AcknowledgementBatch(
                                    first_offset=run.first,
                                    last_offset=run.last,
                                    acknowledge_types=[run.kind],
                                )
                                for run in runs(acks[place])
                            ],
                        )
                        for place in places
                    ],
                )
                for topic_id, places in _by_topic(sorted(acks))
            ],
        )

    def answered(self, codes: Mapping[Place, int]) -> None:
        """Settle what the last request carried; a partition without a code was stored."""
        self._epoch = self._epoch % EPOCH_MAX + 1
        self.must_pause = False
        sent, self._sent = self._sent, {}
        for place, group in sent.items():
            self._settle(place, group, _code(codes.get(place, 0)))

    def refused(self, code: ErrorCode) -> None:
        """End the session: the leader refused the whole request, so nothing was stored."""
        self._end(Verdict(Outcome.LOST, code))

    def broke(self) -> None:
        """End the session: the connection broke, and the outcome of what was sent is unknown."""
        self._end(Verdict(Outcome.UNKNOWN))

    def _end(self, sent: Verdict) -> None:
        self.is_ended = True
        for group in self._sent.values():
            for ack in group.values():
                ack.settle(sent)
        for groups in self._groups.values():
            for group in groups:
                for ack in group.values():
                    ack.settle(Verdict(Outcome.LOST, sent.code))
        self._sent, self._groups = {}, {}

    def _take(self, places: set[Place], *, renews: bool) -> dict[Place, Group]:
        """Move one group of each partition to what is under way."""
        assert not self._sent, "one request at a time"
        for place in places & set(self._groups):
            groups = self._groups[place]
            if not renews and _renews(groups[0]):
                continue
            self._sent[place] = groups.popleft()
            if not groups:
                del self._groups[place]
        return self._sent

    def _settle(self, place: Place, group: Group, code: ErrorCode) -> None:
        if code in TRY_AGAIN:
            self.must_pause = True
            self._put_back(place, [group])
        elif code == ErrorCode.INVALID_RECORD_STATE and len(group) > 1:
            self._put_back(place, _halves(group))
        else:
            verdict = STORED if code == ErrorCode.NONE else Verdict(Outcome.LOST, code)
            for ack in group.values():
                ack.settle(verdict)

    def _put_back(self, place: Place, groups: Iterable[Group]) -> None:
        """Send refused groups again before others."""
        there = self._groups.setdefault(place, deque())
        there.extendleft(reversed(list(groups)))


def runs(group: Group) -> list[AckRun]:
    """Return the acknowledgements of one partition, in the order of the offsets."""
    found: list[AckRun] = []
    for offset in sorted(group):
        kind = group[offset].kind
        if found and found[-1].last + 1 == offset and found[-1].kind is kind:
            found[-1] = AckRun(found[-1].first, offset, kind)
        else:
            found.append(AckRun(offset, offset, kind))
    return found


def _renews(group: Group) -> bool:
    return any(ack.kind is AckKind.RENEW for ack in group.values())


def _halves(group: Group) -> list[Group]:
    offsets = sorted(group)
    middle = len(offsets) // 2
    parts = offsets[:middle], offsets[middle:]
    return [{offset: group[offset] for offset in part} for part in parts]


def _by_topic(places: Iterable[Place]) -> Iterator[tuple[bytes, list[Place]]]:
    topics: dict[bytes, list[Place]] = defaultdict(list)
    for place in places:
        topics[place.topic_id].append(place)
    yield from topics.items()


def _code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
