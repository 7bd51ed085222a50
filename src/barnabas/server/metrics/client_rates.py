"""How much each client id produces and fetches, and how long it is throttled.

Clients choose their ids. So only so many are known at a time: those that sent nothing for a minute
are dropped, and while there is no room newcomers are not counted.
"""

from collections.abc import Iterator
from heapq import nlargest

CLIENTS_MAX = 1_000
SHOWN_MAX = 50
QUIET_TURNS_MAX = 6
MS_PER_S = 1_000


class Flow:
    """What one client id does in one direction."""

    __slots__ = ("_size_before", "_throttled_before", "rate", "requests", "size", "throttle_ms")

    def __init__(self) -> None:
        self.size = 0
        self.requests = 0
        """Requests since the last turn."""
        self.throttle_ms = 0
        self.rate = 0.0
        """Bytes per second during the last turn."""
        self._size_before = 0
        self._throttled_before = 0.0

    @property
    def throttle_time_ms(self) -> float:
        """The average pause of a request during the last turn."""
        return self._throttled_before

    def turn(self, passed_ms: int) -> bool:
        """Work out the rates of the time since the last turn; return whether there was a request.

        The pauses and requests begin anew.
        """
        had_requests = self.requests > 0
        self.rate = (self.size - self._size_before) * MS_PER_S / max(1, passed_ms)
        self._throttled_before = self.throttle_ms / self.requests if had_requests else 0.0
        self._size_before, self.throttle_ms, self.requests = self.size, 0, 0
        return had_requests


class Client:
    """One client id."""

    __slots__ = ("fetched", "produced", "quiet_turns")

    def __init__(self) -> None:
        self.produced = Flow()
        self.fetched = Flow()
        self.quiet_turns = 0


class ClientRates:
    """All client ids that are known at present."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def find(self, client_id: str) -> Client | None:
        """Return the numbers of a client id; None where there is no room for it."""
        found = self._clients.get(client_id)
        if found is None and len(self._clients) < CLIENTS_MAX:
            found = self._clients[client_id] = Client()
        return found

    def turn(self, passed_ms: int) -> None:
        """Work out all rates; drop clients that have been quiet for long."""
        for client_id, client in list(self._clients.items()):
            active = client.produced.turn(passed_ms)
            active = client.fetched.turn(passed_ms) or active
            client.quiet_turns = 0 if active else client.quiet_turns + 1
            if client.quiet_turns > QUIET_TURNS_MAX:
                del self._clients[client_id]

    def busiest(self) -> Iterator[tuple[str, Client]]:
        """Return the client ids with the highest rates."""
        yield from nlargest(
            SHOWN_MAX,
            self._clients.items(),
            key=lambda pair: pair[1].produced.rate + pair[1].fetched.rate,
        )
