"""What a quorum member uses of its surroundings: timers, timeouts, requests, and effects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from barnabas.effects import Address, Effect, Notice
from barnabas.model.settings import ClusterSettings
from barnabas.model.timers import Timers
from barnabas.protocol.message import Message

DOUBLINGS_MAX = 8

AskPeer = Callable[[Address, Message, int, Callable[[Any | None], None]], None]
"""Takes an address, a request, a timeout in milliseconds, and a callback.

The callback gets the response, or None if there is none.
"""


class Timeouts:
    """How long a member waits for what. Random parts keep members from acting at the same time."""

    def __init__(self, settings: ClusterSettings, rng: Random) -> None:
        self.fetch_ms = settings.fetch_timeout_ms
        self._election_ms = settings.election_timeout_ms
        self._rng = rng

    @property
    def retry_ms(self) -> int:
        """How long to wait before a failed action is tried again."""
        return max(1, self._election_ms // 20)

    def draw_election_ms(self) -> int:
        """Draw how long to wait before the next election."""
        return self._rng.randint(self._election_ms, 2 * self._election_ms)

    def draw_first_election_ms(self) -> int:
        """Draw the wait after a start. It is short: a pre-vote does not disturb a leader."""
        return self._rng.randint(1, max(1, self._election_ms // 4))

    def draw_candidacy_ms(self, lost_elections: int) -> int:
        """Draw the wait after a lost election, from a range that doubles with each loss."""
        longest_ms = 2 * self.retry_ms << min(lost_elections, DOUBLINGS_MAX)
        return self._rng.randint(1, min(longest_ms, self._election_ms))

    def draw_leader_ms(self) -> int:
        """Draw how long a follower waits for its leader.

        The random part decides which follower misses the leader first and likely succeeds it.
        """
        return self.fetch_ms + self._rng.randint(0, self.fetch_ms // 4)


@dataclass(frozen=True, slots=True)
class Environment:
    """The interface between a quorum member and the process that it runs in."""

    timers: Timers
    timeouts: Timeouts
    ask: AskPeer
    outbox: list[Effect]

    def warn(self, event: str, facts: Mapping[str, Any]) -> None:
        """Log a warning for the operator."""
        self.outbox.append(Notice("warning", event, dict(facts)))

    def warn_of_disk(self, error: OSError) -> None:
        """Log that the disk refused a write to the metadata log or the quorum state."""
        self.warn("writing metadata failed", {"problem": str(error)})
