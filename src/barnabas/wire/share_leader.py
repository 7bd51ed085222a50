"""A share consumer's connection to one leader, and the session on it; one request at a time."""

import time
from collections.abc import Callable, Iterable

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from barnabas.protocol.messages.share_fetch import (
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from barnabas.protocol.records import Record
from barnabas.wire.acquired_records import decode
from barnabas.wire.cluster_wire import Node, require
from barnabas.wire.pipeline import Pipeline
from barnabas.wire.share_session import ShareSession
from barnabas.wire.share_values import Ack, FetchLimits, Place, ShareRecord
from barnabas.wire.wire_failures import LinkError

RETRY_S = 0.1
"""The pause after an error that passes."""
DENIED = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
}
"""Errors that asking again does not change."""

Connect = Callable[[Node], Pipeline]
Topics = dict[bytes, str]


class ShareLeader:
    """One leader of partitions that the member reads."""

    def __init__(
        self, node: Node, connect: Connect, new_session: Callable[[], ShareSession]
    ) -> None:
        self._node, self._connect, self._new_session = node, connect, new_session
        self._pipeline: Pipeline | None = None
        self._expected: type[ShareFetchResponse] | type[ShareAcknowledgeResponse] | None = None
        self._asked_at_s = 0.0
        self.session = new_session()
        self.not_before_s = 0.0
        """When to send the next request, after an error."""
        self.is_stale = False
        """Whether an answer says that metadata must be looked up again."""

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is outstanding."""
        return self._expected is not None

    def fileno(self) -> int:
        """Return the number of the socket, for `select`."""
        assert self._pipeline is not None, "only a leader that is waiting is selected"
        return self._pipeline.fileno()

    def want(self, places: set[Place]) -> None:
        """Read these partitions from now on."""
        self.session.wanted = places

    def fetch(self, limits: FetchLimits) -> None:
        """Ask for records, with the acknowledgements that a fetch can carry."""
        pipeline = self._connected()
        if pipeline is not None:
            is_exact = limits.is_exact and pipeline.version(ShareFetchRequest) >= 2
            self._send(self.session.fetch(limits._replace(is_exact=is_exact)), ShareFetchResponse)

    def acknowledge(self, *, is_final: bool = False) -> None:
        """Send acknowledgements alone."""
        if self._connected() is not None:
            request = self.session.acknowledge(is_final=is_final)
            self._send(request, ShareAcknowledgeResponse)

    def receive(self, topics: Topics) -> list[ShareRecord]:
        """Take the answer; raise `RefusedError` if the leader can never give another one."""
        assert self._pipeline is not None
        assert self._expected is not None
        try:
            answer = self._pipeline.receive(self._expected)
        except LinkError:
            self.hang_up()
            return []
        self._expected = None
        code = ErrorCode(answer.error_code)
        if code != ErrorCode.NONE:
            self._refused(code)
            return []
        if isinstance(answer, ShareAcknowledgeResponse):
            self._acknowledged(answer)
            return []
        return self._fetched(answer, topics)

    def check_patience(self, limit_s: float) -> None:
        """Give the connection up if an answer is overdue."""
        if self.is_waiting and time.monotonic() > self._asked_at_s + limit_s:
            self.hang_up()

    def hang_up(self) -> None:
        """End the session and the connection; the broker gives the records to others."""
        if self._pipeline is not None:
            self._pipeline.close()
        self._pipeline = self._expected = None
        self.session.broke()
        self._begin_anew()

    def _connected(self) -> Pipeline | None:
        if self._pipeline is None:
            try:
                self._pipeline = self._connect(self._node)
            except (LinkError, OSError):
                self.hang_up()
        return self._pipeline

    def _send(
        self,
        request: object,
        expected: type[ShareFetchResponse] | type[ShareAcknowledgeResponse],
    ) -> None:
        assert self._pipeline is not None
        try:
            self._pipeline.send(request)  # type: ignore[arg-type]
        except LinkError:
            self.hang_up()
            return
        self._expected = expected
        self._asked_at_s = time.monotonic()

    def _refused(self, code: ErrorCode) -> None:
        self.session.refused(code)
        self._begin_anew()
        if code in DENIED:
            require(code, "The share group")

    def _begin_anew(self) -> None:
        """Replace a session that has ended; look the leader up before the next request."""
        wanted = self.session.wanted
        self.session = self._new_session()
        self.session.wanted = wanted
        self._pause()

    def _pause(self) -> None:
        self.is_stale = True
        self.not_before_s = time.monotonic() + RETRY_S

    def _acknowledged(self, answer: ShareAcknowledgeResponse) -> None:
        codes = {
            Place(topic.topic_id, each.partition_index): each.error_code
            for topic in answer.responses
            for each in topic.partitions
        }
        self._answered(codes)

    def _answered(self, codes: dict[Place, int]) -> None:
        self.session.answered(codes)
        if self.session.must_pause:
            self.not_before_s = time.monotonic() + RETRY_S

    def _fetched(self, answer: ShareFetchResponse, topics: Topics) -> list[ShareRecord]:
        parts = [
            (Place(topic.topic_id, each.partition_index), each)
            for topic in answer.responses
            for each in topic.partitions
        ]
        self._answered({place: each.acknowledge_error_code for place, each in parts})
        lock_s = answer.acquisition_lock_timeout_ms / 1000
        found: list[ShareRecord] = []
        for place, each in parts:
            if each.error_code != ErrorCode.NONE:
                self._partition_failed(place, each, topics)
            found += self._records(place, each, topics, lock_s)
        return found

    def _partition_failed(self, place: Place, data: PartitionData, topics: Topics) -> None:
        self._pause()
        if data.error_code in DENIED:
            name = topics.get(place.topic_id, "with an unknown name")
            require(data.error_code, f'Topic "{name}"')

    def _records(
        self, place: Place, data: PartitionData, topics: Topics, lock_s: float
    ) -> Iterable[ShareRecord]:
        acquired = decode(data.records, data.acquired_records)
        for offset, kind in acquired.without.items():
            self.session.add(Ack(place, offset, kind))
        name = topics.get(place.topic_id, "")
        return [self._record(place, name, lock_s, *each) for each in acquired.records]

    def _record(
        self, place: Place, name: str, lock_s: float, record: Record, deliveries: int
    ) -> ShareRecord:
        return ShareRecord(
            session=self.session,
            place=place,
            topic=name,
            offset=record.offset,
            timestamp_ms=record.timestamp,
            key=record.key,
            value=record.value,
            headers=record.headers,
            deliveries=deliveries,
            lock_s=lock_s,
            deadline_s=time.monotonic() + lock_s,
        )
