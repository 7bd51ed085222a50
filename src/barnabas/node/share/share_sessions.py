"""Share sessions (KIP-932): a member names its partitions once, then only what changed.

A session belongs to a member of a group on one broker, and to the connection on which it began.
When the session ends or the connection closes, the member gives back what it holds.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = (1 << 31) - 1


class Owner(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


class Place(NamedTuple):
    """A partition by the id of its topic."""

    topic_id: TopicId
    partition: int


class ShareSession:
    """The partitions of one member on this broker."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.next_epoch = 1
        self.places: dict[Place, None] = {}
        """Its partitions; the one that was served last comes last."""
        self.ended: Callable[[], None] = _nothing
        """Called when the session ends."""

    def change(self, added: Iterable[Place], forgotten: Iterable[Place]) -> None:
        """Add and remove partitions."""
        for place in added:
            self.places.setdefault(place)
        for place in forgotten:
            self.places.pop(place, None)

    def served(self, place: Place) -> None:
        """Serve a partition last next time, so that a busy one does not starve the others."""
        if place in self.places:
            del self.places[place]
            self.places[place] = None


class ShareSessions:
    """All share sessions of a broker."""

    def __init__(
        self,
        sessions_max: int,
        released: Callable[[Owner], None],
        unused: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take what to call when a member leaves, and when the last member of a group has left."""
        self._sessions_max = sessions_max
        self._released = released
        self._unused = unused
        self._counts: Counter[str] = Counter()
        self._sessions: dict[Owner, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, owner: Owner) -> ShareSession:
        """Begin a session; an older one of the member ends, and keeps what it has acquired.

        Raise SHARE_SESSION_LIMIT_REACHED if there are too many.
        """
        before = self._sessions.get(owner)
        if before is not None:
            before.ended()
        elif len(self._sessions) >= self._sessions_max:
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        if before is None:
            self._counts[owner.group_id] += 1
        session = self._sessions[owner] = ShareSession(owner)
        return session

    def resume(self, owner: Owner, epoch: int) -> ShareSession:
        """Return the session for the member's next request."""
        session = self.find(owner)
        if epoch != session.next_epoch:
            problem = f"the session is at epoch {session.next_epoch}, not {epoch}"
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, problem)
        session.next_epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        return session

    def find(self, owner: Owner) -> ShareSession:
        """Return the session of a member; raise SHARE_SESSION_NOT_FOUND if there is none."""
        session = self._sessions.get(owner)
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def close(self, session: ShareSession) -> None:
        """End a session: the member gives back what it holds."""
        if self._sessions.get(session.owner) is session:
            del self._sessions[session.owner]
            session.ended()
            self._released(session.owner)
            group_id = session.owner.group_id
            self._counts[group_id] -= 1
            if not self._counts[group_id]:
                del self._counts[group_id]
                self._unused(group_id)


def _nothing() -> None:
    """Do nothing."""
