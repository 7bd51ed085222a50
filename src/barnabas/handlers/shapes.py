"""The short way for clients that ask as they asked before.

A client sends the same request again and again; only correlation id and a few bytes differ. What
lies before those bytes is remembered with a shape, and a request that begins with a known one is
answered by it: nothing is parsed and no answer is built field by field. Whatever does not fit is
left to the handler, and so is every refusal. The two ways must always agree; tests go both.

`produce_again.py` and `commit_again.py` have the shapes.
"""

from struct import Struct
from typing import Protocol

from barnabas.handlers import commit_again, produce_again
from barnabas.handlers.commit_again import CommitShape
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.produce import ProduceRequest

SHAPES_MAX = 10_000
LESSONS_MAX = 8
"""How often a member's commits are looked at: where they are always different, no more."""
CLIENT_ID_AT = 8

ShortAnswer = bytes | Pending[list[Chunk]] | None


class Shape(Protocol):
    """What is known of requests that are alike."""

    def answer(
        self, frame: memoryview, prefix_bytes: int, correlation_id: int, now_ms: int
    ) -> ShortAnswer:
        """Serve a request; None where the handler must. Bytes begin with their length."""


class Shapes:
    """The shapes that were seen, by API and the bytes that requests begin with."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: dict[tuple[int, bytes], Shape] = {}
        self._heads: dict[int, Struct] = {}
        """By its size, the part that is looked up: key and version of the API as one number, the
        correlation id, and the bytes after it."""
        self._commits_seen: dict[bytes, int] = {}
        self._commits_known: dict[bytes, int] = {}
        """How far a member's last shape reaches."""

    def answer(self, frame: memoryview, prefix_bytes: int, now_ms: int) -> ShortAnswer:
        """Serve a request with a known shape; None where there is none.

        `prefix_bytes` is how far the connection's last request was like others of its shape: for
        most connections that is the same in the next one.
        """
        shape, correlation_id = self._find(frame, prefix_bytes)
        if shape is None:
            return None
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
        if len(self._commits_seen) >= SHAPES_MAX:
            self._commits_seen.clear()
            self._commits_known.clear()
        signature = commit_again.signature(header, request, len(frame))
        known = self._commits_known.get(signature, 0)
        shape = self._find(frame, known)[0]
        if isinstance(shape, CommitShape) and shape.fits(frame, known):
            return known  # it was another connection that learnt it
        seen = self._commits_seen.get(signature, 0)
        self._commits_seen[signature] = seen + 1
        if not 0 < seen <= LESSONS_MAX:
            return 0
        learnt = commit_again.learn(self._node, frame, header, request, now_ms)
        if learnt is None:
            return 0
        self._commits_known[signature] = self._keep(frame, *learnt)
        return self._commits_known[signature]

    def _find(self, frame: memoryview, prefix_bytes: int) -> tuple[Shape | None, int]:
        """Return the shape that a request begins like, and its correlation id."""
        head = self._heads.get(prefix_bytes)
        if head is None or len(frame) < prefix_bytes:
            return None, 0
        api, correlation_id, beginning = head.unpack_from(frame)
        return self._known.get((api, beginning)), correlation_id

    def _keep(self, frame: memoryview, shape: Shape, prefix_bytes: int) -> int:
        if len(self._known) >= SHAPES_MAX:
            self._known.clear()
            self._heads.clear()
        head = self._heads.get(prefix_bytes)
        if head is None:
            head = self._heads[prefix_bytes] = Struct(f">ii{prefix_bytes - CLIENT_ID_AT}s")
        api, _, beginning = head.unpack_from(frame)
        self._known[api, beginning] = shape
        return prefix_bytes
