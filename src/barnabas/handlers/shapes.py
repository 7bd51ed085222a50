"""The short way for clients that ask as they asked before.

A client sends the same request again and again; only correlation id and a few bytes differ. What
lies before those bytes is remembered with a shape, and a request that begins with a known one is
answered by it: nothing is parsed and no answer is built field by field. Whatever does not fit is
left to the handler, and so is every refusal. The two ways must always agree; tests go both.

Shapes are bounded in bytes. The oldest goes first, unless it was used since it was last looked at:
then it counts as new ("second chance", which costs a request less than an order of use would). A
commit's shape also goes when its group takes it no more: the member left, or a generation began.

`produce_again.py` and `commit_again.py` have the shapes.
"""

from struct import Struct
from typing import Protocol

from barnabas.handlers.groups import commit_again
from barnabas.handlers.groups.commit_again import CommitShape
from barnabas.handlers.produce_fetch import produce_again
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.produce import ProduceRequest

SHAPES_BYTES_MAX = 32 * 1024 * 1024
"""Enough for 20,000 producers, or for 10,000 members that commit three partitions each. A client
that is not remembered is served all the same, at two to four times the cost."""
SHAPE_BYTES_MAX = SHAPES_BYTES_MAX // 16
"""A larger one is not kept: it would push out many others."""
COMMIT_FRAME_BYTES_MAX = 8 * 1024
"""Larger commits, of about 450 partitions, are not looked at: to find their shape would hold up the
event loop for more than 10 ms."""
SIGNATURES_MAX = 10_000
HEADS_MAX = 1_000
LESSONS_MAX = 8
"""How often a member's commits are looked at: where they are always different, no more."""
CHECK_INTERVAL_MS = 1_000
CHECKED_AT_ONCE = 100
CLIENT_ID_AT = 8

ShortAnswer = bytes | Pending[list[Chunk]] | None
Key = tuple[int, bytes]
"""Key and version of the API as one number, and the bytes behind the correlation id."""


class Shape(Protocol):
    """What is known of requests that are alike."""

    was_used: bool
    """Whether a request was answered by it since it was last looked at."""

    @property
    def kept_bytes(self) -> int:
        """About how much memory it takes."""

    def answer(
        self, frame: memoryview, prefix_bytes: int, correlation_id: int, now_ms: int
    ) -> ShortAnswer:
        """Serve a request; None where the handler must. Bytes begin with their length."""


class Shapes:
    """The shapes that were seen, by API and the bytes that requests begin with."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: dict[Key, Shape] = {}
        """The oldest first."""
        self.kept_bytes = 0
        """About how much memory all of them take, the bytes that requests begin with included."""
        self._heads: dict[int, Struct] = {}
        """By its size, the part that is looked up: key and version of the API as one number, the
        correlation id, and the bytes after it."""
        self._commits_seen: dict[bytes, int] = {}
        self._commits_known: dict[bytes, int] = {}
        """How far a member's last shape reaches."""
        self._unchecked: list[Key] = []
        self._checks = False
        """Whether `_check_some` is going to be called."""

    def __len__(self) -> int:
        return len(self._known)

    def answer(self, frame: memoryview, prefix_bytes: int, now_ms: int) -> ShortAnswer:
        """Serve a request with a known shape; None where there is none.

        `prefix_bytes` is how far the connection's last request was like others of its shape: for
        most connections that is the same in the next one.
        """
        head = self._heads.get(prefix_bytes)
        if head is None or len(frame) < prefix_bytes:
            return None
        api, correlation_id, beginning = head.unpack_from(frame)
        shape = self._known.get((api, beginning))
        if shape is None:
            return None
        shape.was_used = True
        return shape.answer(frame, prefix_bytes, correlation_id, now_ms)

    def learn_produce(
        self, frame: memoryview, header: RequestHeader, request: ProduceRequest
    ) -> int:
        """Remember a request that was served; return how much of it is the shape's, 0 for none."""
        learnt = produce_again.learn(self._node, frame, header, request)
        return 0 if learnt is None else self._keep(frame, *learnt)

    def learn_commit(
        self, frame: memoryview, header: RequestHeader, request: OffsetCommitRequest, now_ms: int
    ) -> int:
        """Do the same for a commit, from a member's second one of the same size on.

        To find a shape costs more than a commit does.
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
            return known  # it was another connection that learnt it
        seen = self._commits_seen.get(signature, 0)
        self._commits_seen[signature] = seen + 1
        if not 0 < seen <= LESSONS_MAX:
            return 0
        learnt = commit_again.learn(self._node, frame, header, request, now_ms)
        if learnt is None:
            return 0
        self._check_from_time_to_time()
        self._commits_known[signature] = self._keep(frame, *learnt)
        return self._commits_known[signature]

    def _find(self, frame: memoryview, prefix_bytes: int) -> Shape | None:
        """Return the shape that a request begins like."""
        head = self._heads.get(prefix_bytes)
        if head is None or len(frame) < prefix_bytes:
            return None
        api, _, beginning = head.unpack_from(frame)
        return self._known.get((api, beginning))

    def _keep(self, frame: memoryview, shape: Shape, prefix_bytes: int) -> int:
        size = shape.kept_bytes + prefix_bytes
        if size > SHAPE_BYTES_MAX:
            return 0
        if len(self._heads) >= HEADS_MAX:
            self._heads.clear()  # what lost its head is learnt anew
        head = self._heads.get(prefix_bytes)
        if head is None:
            head = self._heads[prefix_bytes] = Struct(f">ii{prefix_bytes - CLIENT_ID_AT}s")
        api, _, beginning = head.unpack_from(frame)
        self._drop((api, beginning))
        self._known[api, beginning] = shape
        self.kept_bytes += size
        while self.kept_bytes > SHAPES_BYTES_MAX:
            self._drop_oldest()
        return prefix_bytes

    def _drop_oldest(self) -> None:
        """Drop a shape, or give it a second chance where it was used."""
        key = next(iter(self._known))
        shape = self._known[key]
        if shape.was_used:
            shape.was_used = False
            self._known[key] = self._known.pop(key)
        else:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        shape = self._known.pop(key, None)
        if shape is not None:
            self.kept_bytes -= shape.kept_bytes + CLIENT_ID_AT + len(key[1])

    def _check_from_time_to_time(self) -> None:
        if not self._checks:
            self._checks = True
            self._node.timers.after(CHECK_INTERVAL_MS, self._check_some)

    def _check_some(self) -> None:
        """Drop commits that their groups take no more; a few at a time, in turn."""
        self._checks = False
        if not self._unchecked:
            shapes = self._known.items()
            self._unchecked = [key for key, shape in shapes if isinstance(shape, CommitShape)]
        if not self._unchecked:
            return
        for key in self._unchecked[-CHECKED_AT_ONCE:]:
            shape = self._known.get(key)
            if isinstance(shape, CommitShape) and shape.is_over():
                self._drop(key)
        del self._unchecked[-CHECKED_AT_ONCE:]
        self._check_from_time_to_time()
