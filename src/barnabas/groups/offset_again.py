"""A commit that a member repeats with other offsets each time.

Its records are the same, too, except for the offsets and the time. So their bytes are kept as a
template; whether the group and the topics still accept the commit is checked each time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, cast

from barnabas.groups.offset_records import OffsetRecord
from barnabas.groups.offset_store import PlaceAgain, TopicAgain
from barnabas.metadata.image import TopicImage
from barnabas.model.coordination import Caller, Outcome
from barnabas.model.errors import ErrorCode
from barnabas.protocol.byte_template import ByteTemplate, twin
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.records import own_body

if TYPE_CHECKING:
    from barnabas.groups.offsets import Offsets


class RepeatedCommit:
    """One such commit. Its bytes are the same as those from `Offsets.commit`."""

    __slots__ = ("_again", "_request", "_template", "_topics", "_version", "count", "offsets")

    def __init__(
        self,
        offsets: "Offsets",
        request: OffsetCommitRequest,
        version: int,
        topics: list[TopicImage],
        rows: list[OffsetRecord],
        twin_rows: list[OffsetRecord],
    ) -> None:
        self.offsets = offsets
        self._request = request
        self._version = version
        self._topics = topics
        self._again = _again(rows)
        self.count = len(rows)
        """How many offsets it commits."""
        self._template = ByteTemplate(own_body(rows)[0], own_body(twin_rows)[0])
        if self._template.count != 2 * len(rows):
            raise ValueError("a record of a commit holds an offset and a time")

    def is_taken(self) -> bool:
        """Tell whether the group and the topics are still the same."""
        return self.offsets.takes(self._request, self._version, self._topics)

    def is_refused(self) -> bool:
        """Tell whether the group refuses it by now. This does not count as a heartbeat."""
        return self.offsets.refuses(self._request, self._version)

    def body(self, offsets: tuple[int, ...], now_ms: int) -> bytes:
        """Return the records with these offsets."""
        numbers = [now_ms] * (2 * len(offsets))
        numbers[::2] = offsets
        return self._template.fill(numbers)

    def replay(self, offsets: tuple[int, ...], now_ms: int) -> None:
        """Replay the records of `body`."""
        self.offsets.replay_again(self._request.group_id, self._again, offsets, now_ms)


def repeated(
    offsets: "Offsets", request: OffsetCommitRequest, caller: Caller
) -> RepeatedCommit | None:
    """Return the constant part of a commit; None if it is refused or unusual."""
    outcome = offsets.commit(request, caller)
    if request.retention_time_ms != -1 or not outcome.records or not _is_taken_whole(outcome):
        return None
    with twin_offsets(request):
        twins = offsets.commit(request, caller._replace(now_ms=twin(caller.now_ms))).records
    topics = [topic for topic in offsets.topics_of(request, caller.version) if topic is not None]
    return RepeatedCommit(
        offsets,
        request,
        caller.version,
        topics,
        cast("list[OffsetRecord]", outcome.records),
        cast("list[OffsetRecord]", twins),
    )


@contextmanager
def twin_offsets(request: OffsetCommitRequest) -> Iterator[None]:
    """Replace the offsets in a request, within a `with` block."""
    parts = [part for topic in request.topics for part in topic.partitions]
    kept = [part.committed_offset for part in parts]
    try:
        for part in parts:
            part.committed_offset = twin(part.committed_offset)
        yield
    finally:
        for part, offset in zip(parts, kept, strict=True):
            part.committed_offset = offset


def _again(rows: list[OffsetRecord]) -> list[TopicAgain]:
    return [
        (topic, [_place(row) for row in of_topic])
        for topic, of_topic in groupby(rows, lambda row: row.topic)
    ]


def _place(row: OffsetRecord) -> PlaceAgain:
    _, leader_epoch, note, _, expire_ms, topic_id, _ = row.committed
    return PlaceAgain(row.partition, leader_epoch, note, expire_ms, topic_id)


def _is_taken_whole(outcome: Outcome[OffsetCommitResponse]) -> bool:
    response = outcome.response
    assert isinstance(response, OffsetCommitResponse)
    return all(
        part.error_code == ErrorCode.NONE for topic in response.topics for part in topic.partitions
    )
