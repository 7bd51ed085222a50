"""Tracks the heartbeats of brokers at the active controller (BrokerHeartbeat, key 63).

The sessions are in memory only. A controller that takes over has received no heartbeats yet, so
each unfenced broker starts with a whole session: late fencing is better than fencing a whole
cluster because the controller changed.

A heartbeat says how far its broker has applied the metadata log, as the offset after the last
applied record. Two things wait for that. A broker is unfenced only after it has applied its own
registration, and so everything before it. A broker that stops may exit only after all others have
applied the records that name the new leaders.

    registered, fenced --caught up--> unfenced --want_shut_down--> stopping --others know--> fenced
            ^                             |
            +-- no heartbeat, want_fence -+
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.controller.brokers import fence, finish_shutdown, start_shutdown, unfence
from barnabas.controller.isr_decisions import sender_is_current
from barnabas.metadata.image import BrokerImage, Image
from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)


@dataclass(slots=True)
class _Session:
    heard_ms: int
    required_offset: int
    """The offset that the broker must have applied to be unfenced."""
    applied_offset: int = -1
    moved_offset: int | None = None
    """The log offset after the records that name the new leaders; None unless it stops."""


class HeartbeatOutcome(NamedTuple):
    """The outcome of a heartbeat; the response is sent when the records are committed."""

    records: list[MetadataRecord]
    response: BrokerHeartbeatResponse


class Heartbeats:
    """The sessions of brokers with this controller."""

    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, _Session] = {}

    def begin(self, image: Image, now_ms: int, end_offset: int) -> None:
        """Restart all sessions: this controller has become active with a log of this length."""
        self._sessions = {
            broker.node_id: _Session(now_ms, end_offset)
            for broker in image.brokers.values()
            if not broker.fenced
        }

    def registered(self, node_id: int, now_ms: int, end_offset: int) -> None:
        """Start the session of a process; its registration is the last record below the offset."""
        self._sessions[node_id] = _Session(now_ms, end_offset)

    def forget(self, node_id: int) -> None:
        """End the session of an unregistered broker."""
        self._sessions.pop(node_id, None)

    def in_session(self, node_id: int, now_ms: int) -> bool:
        """Whether a broker has sent a heartbeat within the session timeout."""
        session = self._sessions.get(node_id)
        return session is not None and now_ms < session.heard_ms + self._session_timeout_ms

    def applied(self, node_id: int, offset: int) -> None:
        """Record how far a broker has applied the log, from a heartbeat or another source."""
        session = self._sessions.get(node_id)
        if session is not None:
            session.applied_offset = max(session.applied_offset, offset)

    def due(self, image: Image, now_ms: int) -> list[int]:
        """Return the brokers whose session has ended; they must be fenced."""
        return [
            broker.node_id
            for broker in image.brokers.values()
            if not broker.fenced and not self.in_session(broker.node_id, now_ms)
        ]

    def deadline_ms(self, image: Image) -> int | None:
        """Return when the next session ends; None if there is none."""
        ends = [
            session.heard_ms + self._session_timeout_ms
            for node_id, session in self._sessions.items()
            if node_id in image.brokers and not image.brokers[node_id].fenced
        ]
        return min(ends, default=None)

    def expire(
        self, image: Image, node_id: int, defaults: Mapping[str, str], end_offset: int
    ) -> list[MetadataRecord]:
        """Fence a broker. It is unfenced again after it has applied its fencing."""
        records = fence(image, node_id, defaults)
        if node_id in self._sessions:
            self._sessions[node_id].required_offset = end_offset + len(records)
        return records

    def heartbeat(
        self,
        image: Image,
        request: BrokerHeartbeatRequest,
        defaults: Mapping[str, str],
        *,
        now_ms: int,
        end_offset: int,
    ) -> HeartbeatOutcome:
        """Process a heartbeat; `end_offset` is the end of the log before the returned records."""
        sender_is_current(image, request.broker_id, request.broker_epoch)
        broker = image.brokers[request.broker_id]
        session = self._sessions.setdefault(broker.node_id, _Session(now_ms, end_offset))
        session.heard_ms = now_ms
        self.applied(broker.node_id, request.current_metadata_offset)
        caught_up = request.current_metadata_offset >= session.required_offset
        if request.want_shut_down or broker.stopping:
            return self._stop(image, broker, defaults, end_offset)
        records: list[MetadataRecord] = []
        fenced = broker.fenced
        if request.want_fence and not fenced:
            records, fenced = self.expire(image, broker.node_id, defaults, end_offset), True
        elif fenced and caught_up and not request.want_fence:
            records, fenced = unfence(image, broker.node_id, defaults), False
        return HeartbeatOutcome(
            records, BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=fenced)
        )

    def _stop(
        self, image: Image, broker: BrokerImage, defaults: Mapping[str, str], end_offset: int
    ) -> HeartbeatOutcome:
        """Move leadership away from a broker; let it exit when the others have applied that."""
        others = [n for n in image.brokers if n != broker.node_id and image.is_active(n)]
        if not others:  # no broker can take over, so there is nothing to wait for
            return HeartbeatOutcome([], _stopping(broker, may_exit=True))
        session = self._sessions[broker.node_id]
        if not broker.stopping:  # the first request, or an earlier append failed
            records = start_shutdown(image, broker.node_id, defaults)
            session.moved_offset = end_offset + len(records)
            return HeartbeatOutcome(records, _stopping(broker, may_exit=broker.fenced))
        if session.moved_offset is None:
            session.moved_offset = end_offset
        if broker.fenced or not self._have_applied(others, session.moved_offset):
            return HeartbeatOutcome([], _stopping(broker, may_exit=broker.fenced))
        return HeartbeatOutcome(
            finish_shutdown(image, broker.node_id), _stopping(broker, may_exit=True)
        )

    def _have_applied(self, nodes: Iterable[int], offset: int) -> bool:
        """Whether each of these brokers has applied the log up to an offset."""
        sessions = [self._sessions.get(node_id) for node_id in nodes]
        return all(session and session.applied_offset >= offset for session in sessions)


def _stopping(broker: BrokerImage, *, may_exit: bool) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        is_caught_up=True, is_fenced=broker.fenced or may_exit, should_shut_down=may_exit
    )
