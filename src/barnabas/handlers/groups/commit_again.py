"""The fast path of OffsetCommit, for a member that commits the same partitions again.

Only the offsets differ; see `shapes.py`. A new leader epoch or new metadata is a new shape. If the
coordinator was loaded again or has moved, the handler answers.
"""

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct

from barnabas.groups.group_counts import GroupCounts
from barnabas.groups.group_machine import GroupMachine
from barnabas.groups.offset_again import RepeatedCommit, repeated, twin_offsets
from barnabas.handlers.groups.offset_commit import answered
from barnabas.model.coordination import Caller
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.coordination.coordinator_set import CoordinatorSet
from barnabas.node.coordination.coordinator_shard import Shard
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.byte_template import ByteTemplate
from barnabas.protocol.codec import encoder
from barnabas.protocol.headers import RequestHeader, response_header
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

CORRELATION_BYTES = 4
DIGEST_BYTES = 16
"""Clients choose the length of names, so a digest of this size is kept instead."""
SHAPE_BYTES = 4_000
OFFSET_BYTES = 700
"""Measured: the memory that a shape takes, and what each offset adds to it."""


class CommitShape:
    """All bytes of a commit except its offsets, and of its response except the correlation id."""

    __slots__ = (
        "_answer",
        "_answer_rest",
        "_commit",
        "_coordinators",
        "_counts",
        "_group",
        "_respond",
        "_template",
        "kept_bytes",
        "was_used",
    )

    def __init__(
        self,
        coordinators: CoordinatorSet[GroupMachine],
        group: str,
        commit: RepeatedCommit,
        template: ByteTemplate,
        respond: Callable[[ErrorCode], bytes],
        counts: GroupCounts,
    ) -> None:
        self._counts = counts
        self._coordinators = coordinators
        self._group = group
        self._commit = commit
        self._template = template
        self._respond = respond
        self._answer_rest = respond(ErrorCode.NONE)[CORRELATION_BYTES:]
        self._answer = Struct(f">ii{len(self._answer_rest)}s")
        self.kept_bytes = SHAPE_BYTES + OFFSET_BYTES * commit.count + 4 * template.size
        """About how much memory it takes."""
        self.was_used = False

    def is_over(self) -> bool:
        """Tell whether the coordinator refuses these commits from now on, or has moved."""
        try:
            shard = self._coordinators.shard_for(self._group)
        except ApiError:
            return True
        return shard.machine.offsets is not self._commit.offsets or self._commit.is_refused()

    def fits(self, frame: memoryview, prefix_bytes: int) -> bool:
        """Tell whether a commit that the handler served could have been served by this shape."""
        try:
            shard = self._coordinators.shard_for(self._group)
        except ApiError:
            return False
        return self._is_current(shard) and self._read(frame, prefix_bytes) is not None

    def answer(
        self, frame: memoryview, prefix_bytes: int, correlation_id: int, now_ms: int
    ) -> bytes | Pending[list[Chunk]] | None:
        """Store the offsets of one more commit."""
        offsets = self._read(frame, prefix_bytes)
        if offsets is None:
            return None
        try:
            shard = self._coordinators.shard_for(self._group)
            if not self._is_current(shard):
                return None
            required = self._store(shard, offsets, now_ms)
        except ApiError:
            return None  # refused without a change: the handler answers with the reason
        self._counts.offset_commits += self._commit.count
        return self._encode(shard, required, correlation_id)

    def _is_current(self, shard: Shard[GroupMachine]) -> bool:
        return shard.machine.offsets is self._commit.offsets and self._commit.is_taken()

    def _read(self, frame: memoryview, prefix_bytes: int) -> tuple[int, ...] | None:
        return self._template.read(frame[prefix_bytes - len(self._template.first_constant) :])

    def _store(self, shard: Shard[GroupMachine], offsets: tuple[int, ...], now_ms: int) -> int:
        commit = self._commit
        body = commit.body(offsets, now_ms)
        return shard.append_prepared(body, commit.count, lambda: commit.replay(offsets, now_ms))

    def _encode(
        self, shard: Shard[GroupMachine], required: int, correlation_id: int
    ) -> bytes | Pending[list[Chunk]]:
        size = self._answer.size - 4
        content = self._answer.pack(size, correlation_id, self._answer_rest)
        if shard.partition.high_watermark >= required:
            return content

        def refuse(code: ErrorCode) -> list[Chunk]:
            rest = self._respond(code)[CORRELATION_BYTES:]
            return [content[4 : 4 + CORRELATION_BYTES], rest]

        chunks: list[Chunk] = [content[4:]]
        return shard.safe(required, chunks).or_refused(refuse)


def signature(header: RequestHeader, request: OffsetCommitRequest, size: int) -> bytes:
    """Return a key that commits with the same shape share, and few other commits have."""
    epoch = request.generation_id_or_member_epoch
    facts = (header.api_version, size, epoch, request.group_id, request.member_id)
    return blake2b(repr(facts).encode(), digest_size=DIGEST_BYTES).digest()


def learn(
    node: Node,
    frame: memoryview,
    header: RequestHeader,
    request: OffsetCommitRequest,
    now_ms: int,
) -> tuple[CommitShape, int] | None:
    """Find the shape of a commit that was served, and its length before the first offset.

    A request that our encoder would write in another way (unknown tags, long forms of numbers)
    has no shape. Neither has a request if any part of it is refused.
    """
    version = header.api_version
    encode = encoder(OffsetCommitRequest, version)
    text = encode(request)
    if text != frame[header.body :]:
        return None
    coordinators = node.coordinators.groups
    try:
        shard = coordinators.shard_for(request.group_id)
        caller = Caller(header.client_id or "", "", version, now_ms)
        commit = repeated(shard.machine.offsets, request, caller)
        if commit is None:
            return None
        template = ByteTemplate(text, _twin_text(request, version))
    except (ApiError, ValueError):
        return None
    if template.count != commit.count:
        return None
    head = response_header(ApiKey.OFFSET_COMMIT, version, 0)
    write = encoder(OffsetCommitResponse, version)

    def respond(code: ErrorCode) -> bytes:
        return head + write(answered(request, code))

    shape = CommitShape(
        coordinators, request.group_id, commit, template, respond, node.group_counts
    )
    return shape, header.body + len(template.first_constant)


def _twin_text(request: OffsetCommitRequest, version: int) -> bytes:
    """Write the request with other offsets."""
    with twin_offsets(request):
        return encoder(OffsetCommitRequest, version)(request)
