"""Who was heard of, and when: what the active controller knows by itself (BrokerHeartbeat, key 63).

None of it is in the metadata log. A controller that takes over has heard of nobody yet, so each
broker that is let in starts with a whole session: it is better to fence late than to fence a
cluster because the controller changed.

A broker's heartbeat says how far it has applied the metadata log, as the offset after the last
record it applied. Two things wait for that. A broker is let in only once it knows of its own
registration, hence of everything before it. And one that stops is told to go only once all others
know who leads instead of it.

      registered, fenced --caught up--> let in --want_shut_down--> stopping --others know--> fenced
              ^                           |
              +---- silent, want_fence ---+
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.controller.brokers import begin_stopping, end_stopping, fence, unfence
from barnabas.controller.in_sync import sender_is_current
from barnabas.metadata.image import BrokerImage, Image
from barnabas.metadata.records import MetadataRecord
from barnabas.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)


@dataclass(slots=True)
class _Session:
    heard_ms: int
    required_offset: int
    """What it must have applied to be let in."""
    applied_offset: int = -1
    moved_offset: int | None = None
    """Where the log tells who leads instead of it; None while it does not stop."""


class Beat(NamedTuple):
    """What a heartbeat comes to; the response is sent when the records are committed."""

    records: list[MetadataRecord]
    response: BrokerHeartbeatResponse


class Heartbeats:
    """The sessions of brokers with this controller."""

    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, _Session] = {}

    def begin(self, image: Image, now_ms: int, end_offset: int) -> None:
        """Start over: this controller has become the active one, with a log that ends here."""
        self._sessions = {
            broker.node_id: _Session(now_ms, end_offset)
            for broker in image.brokers.values()
            if not broker.fenced
        }

    def registered(self, node_id: int, now_ms: int, end_offset: int) -> None:
        """Begin the session of a process whose registration ends the log at this offset."""
        self._sessions[node_id] = _Session(now_ms, end_offset)

    def forget(self, node_id: int) -> None:
        """A broker was struck off."""
        self._sessions.pop(node_id, None)

    def in_session(self, node_id: int, now_ms: int) -> bool:
        """Whether a broker was heard of lately."""
        session = self._sessions.get(node_id)
        return session is not None and now_ms < session.heard_ms + self._session_timeout_ms

    def applied(self, node_id: int, offset: int) -> None:
        """Note how far a broker has applied the log, learned from elsewhere than a heartbeat."""
        session = self._sessions.get(node_id)
        if session is not None:
            session.applied_offset = max(session.applied_offset, offset)

    def due(self, image: Image, now_ms: int) -> list[int]:
        """Return the brokers that were silent for too long, and are to be fenced."""
        return [
            broker.node_id
            for broker in image.brokers.values()
            if not broker.fenced and not self.in_session(broker.node_id, now_ms)
        ]

    def deadline_ms(self, image: Image) -> int | None:
        """Return when somebody is due at the earliest; None while nobody can be."""
        ends = [
            session.heard_ms + self._session_timeout_ms
            for node_id, session in self._sessions.items()
            if node_id in image.brokers and not image.brokers[node_id].fenced
        ]
        return min(ends, default=None)

    def expire(
        self, image: Image, node_id: int, defaults: Mapping[str, str], end_offset: int
    ) -> list[MetadataRecord]:
        """Fence a broker. It is let in again once it knows that it was shut out."""
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
    ) -> Beat:
        """Hear of a broker; `end_offset` is where the log ends before what this returns."""
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
        return Beat(records, BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=fenced))

    def _stop(
        self, image: Image, broker: BrokerImage, defaults: Mapping[str, str], end_offset: int
    ) -> Beat:
        """Move everything away from a broker, and let it go when the others know."""
        heirs = [n for n in image.brokers if n != broker.node_id and image.is_active(n)]
        if not heirs:  # nothing can be moved, so nothing is to be waited for
            return Beat([], _stopping(broker, may_go=True))
        session = self._sessions[broker.node_id]
        if not broker.stopping:  # for the first time, or the disk refused it before
            records = begin_stopping(image, broker.node_id, defaults)
            session.moved_offset = end_offset + len(records)
            return Beat(records, _stopping(broker, may_go=broker.fenced))
        if session.moved_offset is None:
            session.moved_offset = end_offset
        if broker.fenced or not self._know(heirs, session.moved_offset):
            return Beat([], _stopping(broker, may_go=broker.fenced))
        return Beat(end_stopping(image, broker.node_id), _stopping(broker, may_go=True))

    def _know(self, nodes: Iterable[int], offset: int) -> bool:
        """Whether each of these brokers has applied the log up to an offset."""
        sessions = [self._sessions.get(node_id) for node_id in nodes]
        return all(session and session.applied_offset >= offset for session in sessions)


def _stopping(broker: BrokerImage, *, may_go: bool) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        is_caught_up=True, is_fenced=broker.fenced or may_go, should_shut_down=may_go
    )
