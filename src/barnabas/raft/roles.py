"""What a node is in the quorum, and what makes it something else.

    role         is                                  becomes
    -----------  ----------------------------------  -------------------------------------------
    unattached   without a leader that it knows.     prospective: its election timeout is over
                 A voter waits; an observer asks     follower: it hears of a leader
                 around who leads
    prospective  a voter asking whether it would     candidate: a majority would vote for it
                 be elected (pre-vote, KIP-996);     follower: it hears of a leader
                 its epoch stays as it is            unattached: somebody has a later epoch
    candidate    a voter that voted for itself in    leader: a majority votes for it
                 a new epoch                         prospective: nobody won in time
                                                     follower, unattached: as above
    leader       the one that a majority voted for   resigned: no majority fetches (check-quorum),
                                                     it is told to stop, it was voted out
                                                     follower, unattached: a later epoch
    resigned     a leader of this epoch no more;     prospective: its election timeout is over
                 asks the others to elect            follower, unattached: a later epoch
    follower     copying a leader's log, whether     prospective (a voter), unattached (an
                 it votes or observes                observer): the fetch timeout is over
                                                     unattached: its leader resigned
    halted       at odds with what was committed     nothing: a person must look

Whoever hears of a later epoch takes it over, whatever it is. Observers differ in that they never
ask for votes: the log says who is one, and may change its mind.

Each change makes a new object. An answer belongs to the object that asked: when it comes late, to
one that is no longer in office, it is not heard.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.effects import Address, Notice
from barnabas.model.timers import Timer
from barnabas.protocol.message import Message

if TYPE_CHECKING:
    from barnabas.raft.machine import Raft


class Role:
    """An office, held until `leave`."""

    name = ""

    def __init__(self, raft: "Raft") -> None:
        self.raft = raft
        self._timers: dict[str, Timer] = {}

    def enter(self) -> None:
        """Take up the office."""

    def leave(self) -> None:
        """Give it up: nothing that was started in it goes on."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def flushed(self) -> None:
        """Hear that what was appended is safe."""

    def refuses_pre_votes(self) -> bool:
        """Whether a leader is at work as far as this node can see."""
        return False

    def after(self, what: str, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later, in the place of what was to be done later under the same name."""
        earlier = self._timers.get(what)
        if earlier is not None:
            earlier.cancel()
        self._timers[what] = self.raft.timers.after(delay_ms, lambda: self._carefully(what, action))

    def ask(
        self, address: Address | None, request: Message, answered: Callable[[Any | None], None]
    ) -> None:
        """Send a request; hear the answer, or None, if still in office by then."""

        def heard(answer: Any | None) -> None:  # noqa: ANN401 - any response
            if self.raft.expects(self):
                self._carefully("answer", lambda: answered(answer))

        if address is None:
            self.after(f"ask {type(request).__name__}", self.raft.retry_ms, lambda: heard(None))
        else:
            self.raft.ask(address, request, self.raft.settings.fetch_timeout_ms, heard)

    def _carefully(self, what: str, action: Callable[[], None]) -> None:
        """Do something that writes: a disk that refuses must not end the node's part for good."""
        try:
            action()
        except OSError as error:
            notice = Notice("warning", "the disk refused metadata", {"problem": str(error)})
            self.raft.outbox.append(notice)
            if self.raft.role is self:
                self.after(what, self.raft.retry_ms, self.again)

    def again(self) -> None:
        """Go on after the disk refused something."""
        self.raft.become(type(self)(self.raft))


class Halted(Role):
    """Out of service, lest more be lost."""

    name = "halted"

    def refuses_pre_votes(self) -> bool:
        """It takes no part in anything."""
        return True
