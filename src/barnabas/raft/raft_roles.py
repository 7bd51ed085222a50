"""The roles that a node can have in the metadata quorum, and the transitions between them.

    role         the node                            becomes
    -----------  ----------------------------------  -------------------------------------------
    unattached   knows no leader. A voter waits;     prospective: its election timeout is over
                 an observer asks the voters for     follower: it learns of a leader
                 the leader
    prospective  is a voter that asks whether it     candidate: a majority would vote for it
                 would be elected (pre-vote,         follower: it learns of a leader
                 KIP-996); its epoch stays           unattached: it learns of a later epoch
    candidate    is a voter that voted for itself    leader: a majority votes for it
                 in a new epoch                      prospective: no candidate won in time
                                                     follower, unattached: as above
    leader       has the votes of a majority         resigned: no majority fetches (check-quorum),
                                                     the operator stops it, it is no voter any more
                                                     follower, unattached: a later epoch
    resigned     led this epoch; asks the others     prospective: its election timeout is over
                 to elect a leader                   follower, unattached: a later epoch
    follower     fetches from a leader, as a voter   prospective (a voter), unattached (an
                 or as an observer                   observer): the fetch timeout is over
                                                     unattached: its leader resigned
    halted       contradicts what was committed      nothing: the operator must repair it

A node that learns of a later epoch adopts it, in any role but halted. Observers never ask for
votes. The log says which nodes are voters, and this can change.

Each transition makes a new object. A response belongs to the object that sent the request: if it
arrives after the next transition, it is ignored.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.effects import Address
from barnabas.model.timers import Timer
from barnabas.protocol.message import Message

if TYPE_CHECKING:
    from barnabas.raft.raft_elections import Elections


class Role:
    """A role from `enter` to `leave`, with the timers and requests that it started."""

    name = ""

    def __init__(self, elections: "Elections") -> None:
        self.elections = elections
        self.identity = elections.identity
        self.voters = elections.voters
        self.environment = elections.environment
        self.timers = elections.environment.timers
        self.timeouts = elections.environment.timeouts
        self._pending_timers: dict[str, Timer] = {}

    @property
    def is_current(self) -> bool:
        """Whether the node still has this role."""
        return self.elections.role is self

    def enter(self) -> None:
        """Start the work of the role."""

    def leave(self) -> None:
        """Cancel all timers of the role."""
        for timer in self._pending_timers.values():
            timer.cancel()
        self._pending_timers.clear()

    def flushed(self) -> None:
        """Act on a finished sync of the log."""

    def refuses_pre_votes(self) -> bool:
        """Whether this node has contact to a leader, so that no election is needed."""
        return False

    def after(self, what: str, delay_ms: int, action: Callable[[], None]) -> None:
        """Call an action later; it replaces the one that waits under the same name."""
        earlier = self._pending_timers.get(what)
        if earlier is not None:
            earlier.cancel()
        self._pending_timers[what] = self.timers.after(
            delay_ms, lambda: self._run_with_retry(what, action)
        )

    def ask(
        self, address: Address | None, request: Message, answered: Callable[[Any | None], None]
    ) -> None:
        """Send a request; pass on the response, or None, if the node has this role then."""

        def responded(response: Any | None) -> None:  # noqa: ANN401 - any response
            if self.elections.expects(self):
                self._run_with_retry("answer", lambda: answered(response))

        if address is None:
            retry_ms = self.timeouts.retry_ms
            self.after(f"ask {type(request).__name__}", retry_ms, lambda: responded(None))
        else:
            self.environment.ask(address, request, self.timeouts.fetch_ms, responded)

    def _run_with_retry(self, what: str, action: Callable[[], None]) -> None:
        """Run an action that writes to disk; if the disk refuses, enter the role again later."""
        try:
            action()
        except OSError as error:
            self.environment.warn_of_disk(error)
            if self.is_current:
                self.after(what, self.timeouts.retry_ms, self.retry)

    def retry(self) -> None:
        """Enter the role again after the disk refused a write."""
        self.elections.become(type(self)(self.elections))


class Halted(Role):
    """Takes no part in the quorum, so that no committed record is lost."""

    name = "halted"

    def refuses_pre_votes(self) -> bool:
        """Refuse: a halted node takes no part in elections."""
        return True
