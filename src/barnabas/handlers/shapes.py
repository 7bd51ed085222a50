"""The fast path: request templates for clients that repeat themselves.

A client sends the same request again and again. Only the correlation id and a few bytes differ. A
shape is a request template: it has all other bytes of such a request. If a request begins like a
known shape, the shape answers it, and the broker does not parse the request or build the response
field by field. The handler serves all other requests, and answers every refusal. The fast path and
the handler must always agree; tests compare them byte for byte.

The rights of one caller say nothing about another. So each principal has its own shapes on each
listener, and with an authorizer from each host (`CallerShapes`): a connection looks them up when it
is accepted, and must look them up again when its principal changes. If any part of a request was
denied, the request is not learnt. When ACLs or roles change, all shapes are dropped (`forget_all`),
so that a shape does not outlive the right of its caller.

The shapes of all callers together are bounded in bytes. The oldest is dropped first, unless it was
used since it was last examined: then it counts as new ("second chance", which costs a request less
than an order of use). The shape of a commit is also dropped once its group refuses it: the member
has left, or a generation has begun.

`produce_again.py` and `commit_again.py` have the shapes.
"""

from itertools import count
from struct import Struct
from typing import Protocol
from weakref import WeakValueDictionary

from barnabas.handlers.groups import commit_again
from barnabas.handlers.groups.commit_again import CommitShape
from barnabas.handlers.produce_fetch import produce_again
from barnabas.handlers.produce_fetch.produce_again import PacedAnswer
from barnabas.model.callers import Caller, Listener, Principal
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.produce import ProduceRequest

SHAPES_BYTES_MAX = 32 * 1024 * 1024
"""Enough for 20,000 producers, or for 10,000 members that commit three partitions each. Requests of
other clients take the normal path, at two to four times the cost."""
SHAPE_BYTES_MAX = SHAPES_BYTES_MAX // 16
"""A larger shape is not kept: it would push out many others."""
COMMIT_FRAME_BYTES_MAX = 8 * 1024
"""Larger commits, of about 450 partitions, are not learnt: finding their shape would block the
event loop for more than 10 ms."""
SIGNATURES_MAX = 10_000
HEADS_MAX = 1_000
LESSONS_MAX = 8
"""How often a member's commits are learnt. After that they are assumed to differ always."""
CHECK_INTERVAL_MS = 1_000
CHECKED_AT_ONCE = 100
CLIENT_ID_AT = 8

FastAnswer = bytes | Pending[list[Chunk]] | PacedAnswer | None
Key = tuple[int, int, bytes]
"""The number of the caller's shapes; key and version of the API as one number; the bytes behind the
correlation id."""


class Shape(Protocol):
    """The bytes that similar requests have in common."""

    was_used: bool
    """Whether it answered a request since it was last examined."""

    @property
    def kept_bytes(self) -> int:
        """About how much memory it takes."""

    def answer(
        self, frame: memoryview, prefix_bytes: int, correlation_id: int, now_ms: int
    ) -> FastAnswer:
        """Serve a request; return None if the handler must. Bytes begin with their length."""


class Shapes:
    """The shapes of all callers: which exist, and how much memory they take."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.known: dict[Key, Shape] = {}
        """The oldest first."""
        self.kept_bytes = 0
        """About how much memory all of them take, the bytes that requests begin with included."""
        self.heads: dict[int, Struct] = {}
        """By length, the layout of the part that is looked up: key and version of the API as one
        number, the correlation id, and the bytes after it."""
        self._numbers = count()
        self._callers: WeakValueDictionary[tuple[Principal, Listener, str], CallerShapes] = (
            WeakValueDictionary()
        )
        """The callers with a connection. Shapes of other callers are dropped as the oldest."""
        self._unchecked: list[Key] = []
        self._checks = False
        """Whether a call of `_check_some` is scheduled."""
        if node.authorizer is not None:
            node.authorizer.on_change.append(self.forget_all)

    def __len__(self) -> int:
        return len(self.known)

    def of(self, caller: Caller) -> "CallerShapes":
        """Return the shapes of a caller's principal on its listener."""
        # ACLs may be about hosts.
        host = "" if self.node.authorizer is None else caller.host
        key = (caller.principal, caller.listener, host)
        found = self._callers.get(key)
        if found is None:
            found = self._callers[key] = CallerShapes(self, next(self._numbers), caller)
        return found

    def forget(self, principal: Principal) -> None:
        """Drop all shapes of a principal, on every listener.

        Its connections may stay open: their next requests take the normal path, and are learnt
        again.
        """
        for (owner, *_), shapes in list(self._callers.items()):
            if owner == principal:
                for key in [key for key in self.known if key[0] == shapes.number]:
                    self.drop(key)
                shapes.start_anew(next(self._numbers))

    def forget_all(self) -> None:
        """Drop all shapes: rights have changed, and cached requests may be denied now."""
        self.known.clear()
        self.kept_bytes = 0
        for shapes in list(self._callers.values()):
            shapes.start_anew(next(self._numbers))

    def keep(self, number: int, frame: memoryview, shape: Shape, prefix_bytes: int) -> int:
        """Remember a shape; return how many bytes of a request it knows, 0 if it is not kept."""
        size = shape.kept_bytes + prefix_bytes
        if size > SHAPE_BYTES_MAX:
            return 0
        if len(self.heads) >= HEADS_MAX:
            self.heads.clear()  # shapes without a head are learnt again
        head = self.heads.get(prefix_bytes)
        if head is None:
            head = self.heads[prefix_bytes] = Struct(f">ii{prefix_bytes - CLIENT_ID_AT}s")
        api, _, beginning = head.unpack_from(frame)
        self.drop((number, api, beginning))
        self.known[number, api, beginning] = shape
        self.kept_bytes += size
        while self.kept_bytes > SHAPES_BYTES_MAX:
            self._drop_oldest()
        return prefix_bytes

    def drop(self, key: Key) -> None:
        """Drop a shape, if there is one."""
        shape = self.known.pop(key, None)
        if shape is not None:
            self.kept_bytes -= shape.kept_bytes + CLIENT_ID_AT + len(key[2])

    def _drop_oldest(self) -> None:
        """Drop a shape, or give it a second chance if it was used."""
        key = next(iter(self.known))
        shape = self.known[key]
        if shape.was_used:
            shape.was_used = False
            self.known[key] = self.known.pop(key)
        else:
            self.drop(key)

    def check_from_time_to_time(self) -> None:
        """Schedule the check for commits that their groups refuse, unless it is scheduled."""
        if not self._checks:
            self._checks = True
            self.node.timers.after(CHECK_INTERVAL_MS, self._check_some)

    def _check_some(self) -> None:
        """Drop commits that their groups refuse; a few at a time, in turn."""
        self._checks = False
        if not self._unchecked:
            shapes = self.known.items()
            self._unchecked = [key for key, shape in shapes if isinstance(shape, CommitShape)]
        if not self._unchecked:
            return
        for key in self._unchecked[-CHECKED_AT_ONCE:]:
            shape = self.known.get(key)
            if isinstance(shape, CommitShape) and shape.is_over():
                self.drop(key)
        del self._unchecked[-CHECKED_AT_ONCE:]
        self.check_from_time_to_time()


class CallerShapes:
    """The shapes of one principal on one listener, by API and the bytes that requests begin with.

    The dictionaries are those of `Shapes`, which bounds them; the number separates callers.
    """

    __slots__ = (
        "__weakref__",
        "_caller",
        "_commits_known",
        "_commits_seen",
        "_heads",
        "_known",
        "_shapes",
        "number",
    )

    def __init__(self, shapes: Shapes, number: int, caller: Caller) -> None:
        self.number = number
        self._caller = Caller(caller.principal, caller.listener, "")
        self._shapes = shapes
        self._known = shapes.known
        self._heads = shapes.heads
        self._commits_seen: dict[bytes, int] = {}
        self._commits_known: dict[bytes, int] = {}
        """The length of the part that a member's last shape knows."""

    def start_anew(self, number: int) -> None:
        """Continue under another number, with nothing learnt."""
        self.number = number
        self._commits_seen.clear()
        self._commits_known.clear()

    def answer(self, frame: memoryview, prefix_bytes: int, now_ms: int) -> FastAnswer:
        """Serve a request with a known shape; return None if there is none.

        `prefix_bytes` is the length of the part that the connection's last request had in common
        with others of its shape: for most connections it is the same in the next one.
        """
        head = self._heads.get(prefix_bytes)
        if head is None or len(frame) < prefix_bytes:
            return None
        api, correlation_id, beginning = head.unpack_from(frame)
        shape = self._known.get((self.number, api, beginning))
        if shape is None:
            return None
        shape.was_used = True
        return shape.answer(frame, prefix_bytes, correlation_id, now_ms)

    def learn_produce(
        self, frame: memoryview, header: RequestHeader, request: ProduceRequest
    ) -> int:
        """Learn a request that was served; return how many bytes the shape knows, 0 for none."""
        learnt = produce_again.learn(self._shapes.node, self._caller, frame, header, request)
        return 0 if learnt is None else self._shapes.keep(self.number, frame, *learnt)

    def learn_commit(
        self, frame: memoryview, header: RequestHeader, request: OffsetCommitRequest, now_ms: int
    ) -> int:
        """Do the same for a commit, from a member's second one of the same size on.

        Finding a shape costs more than a commit.
        """
        if len(frame) > COMMIT_FRAME_BYTES_MAX:
            return 0
        if len(self._commits_seen) >= SIGNATURES_MAX:
            self._commits_seen.clear()
            self._commits_known.clear()
        signature = commit_again.signature(header, request, len(frame))
        known = self._commits_known.get(signature, 0)
        shape = self._find(frame, known)
        if isinstance(shape, CommitShape) and shape.fits(frame, known):
            return known  # learnt from another connection
        seen = self._commits_seen.get(signature, 0)
        self._commits_seen[signature] = seen + 1
        if not 0 < seen <= LESSONS_MAX:
            return 0
        learnt = commit_again.learn(self._shapes.node, frame, header, request, now_ms)
        if learnt is None:
            return 0
        self._shapes.check_from_time_to_time()
        kept = self._shapes.keep(self.number, frame, *learnt)
        self._commits_known[signature] = kept
        return kept

    def _find(self, frame: memoryview, prefix_bytes: int) -> Shape | None:
        """Return the shape that a request begins like."""
        head = self._heads.get(prefix_bytes)
        if head is None or len(frame) < prefix_bytes:
            return None
        api, _, beginning = head.unpack_from(frame)
        return self._known.get((self.number, api, beginning))
