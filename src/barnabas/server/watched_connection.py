"""A connection whose requests are timed: see `slow_events.py`."""

from barnabas.model.errors import WireError
from barnabas.protocol.apis import APIS
from barnabas.protocol.headers import parse_request_header
from barnabas.server.connection import Connection
from barnabas.server.ports import ConnectionOwner, StreamSocket
from barnabas.server.slow_events import Facts, SlowEvents


class WatchedConnection(Connection):
    """One accepted socket, while slow events are looked for."""

    __slots__ = ("_events",)

    def __init__(
        self,
        events: SlowEvents,
        server: ConnectionOwner,
        accepted: StreamSocket,
        host: str,
        now_ms: int,
        *,
        peer: bool = False,
    ) -> None:
        super().__init__(server, accepted, host, now_ms, peer=peer)
        self._events = events

    def _handle(self, frame: memoryview) -> None:
        self._events.step(lambda: self._describe(frame), super()._handle, frame)

    def flush(self) -> None:
        """Send what is queued, as far as the kernel takes it."""
        self._events.step(lambda: ("sending", {"client": self.host}), super().flush)

    def _describe(self, frame: memoryview) -> tuple[str, Facts]:
        facts: Facts = {"client": self.host, "bytes": len(frame)}
        try:
            header = parse_request_header(frame)
            name = f"{APIS[header.api_key].name} v{header.api_version}"
        except (WireError, KeyError):
            return "no request", facts
        return name, {**facts, "client_id": header.client_id}
