"""The metadata of this node: the committed image, and the controller's draft with proposals.

Raft agrees on batches of records; here they become the image that brokers serve from. Only
committed records change it, a whole batch at a time. On the active controller there is a second
image, the draft: what was committed and everything proposed since. Decisions are made against the
draft, so that two conflicting requests cannot both be granted; a response is sent once its
records are committed and this node has acted on them.

When another controller takes over, the draft is void. Proposals that were not committed by then
may still be, or may not: waiting requests fail with NOT_CONTROLLER, and clients must check.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple, Protocol

from barnabas.effects import Effect
from barnabas.metadata.features import INSTALL, LATEST_LEVEL
from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import FeatureLevelChanged, MetadataRecord, decode, encode
from barnabas.model.errors import ApiError, ErrorCode, TooOldError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.ports import Disk
from barnabas.model.settings import Settings
from barnabas.model.timers import Timers
from barnabas.raft.environment import AskPeer
from barnabas.raft.raft_machine import Raft
from barnabas.raft.voters import parse_voter
from barnabas.storage.recovery import Recovered


class Follower(Protocol):
    """The part that acts on metadata."""

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Act on records that were committed; None says that everything may be different."""

    def became_controller(self) -> None:
        """Start the duties of the controller."""

    def lost_control(self) -> None:
        """Stop the duties of the controller."""


class Proposal(NamedTuple):
    """Proposed records, and the answer that waits for them."""

    required_offset: int
    answer: Pending[None]


class Quorum:
    """The image, the draft, and raft below them."""

    def __init__(
        self,
        settings: Settings,
        disk: Disk,
        timers: Timers,
        outbox: list[Effect],
        rng: Random,
        follower: Follower,
        ask: AskPeer,
    ) -> None:
        self.image = Image()
        self.draft: Image | None = None
        self.offset = 0
        """The offset below which everything is in the image."""
        self._follower = follower
        self._proposals: deque[Proposal] = deque()
        self.raft = Raft(
            me=settings.broker.node_id,
            disk=disk,
            data_folder=settings.broker.data_dir,
            bootstrap=[parse_voter(voter) for voter in settings.cluster.voters],
            settings=settings.cluster,
            timers=timers,
            outbox=outbox,
            rng=rng,
            listener=self,
            ask=ask,
        )

    @property
    def controller_id(self) -> NodeId | None:
        """The active controller, as far as this node knows."""
        return self.raft.leader_id

    @property
    def is_controller(self) -> bool:
        """Whether this node is the active controller."""
        return self.draft is not None

    def require_draft(self) -> Image:
        """Return the metadata that decisions are made against; raise if another node decides."""
        if self.draft is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "another node controls the cluster")
        return self.draft

    def open(self) -> Recovered:
        """Read what is stored; raise `StorageError` if committed records are damaged."""
        return self.raft.open()

    def propose(self, changes: Sequence[MetadataRecord], now_ms: int) -> Pending[None]:
        """Have records committed; the answer comes once this node has acted on them.

        Raises `ApiError` if this node is not the active controller, or the disk refuses: then
        nothing has changed. Without records the answer waits for earlier proposals.
        """
        if self.draft is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "another node controls the cluster")
        answer: Pending[None] = Pending()
        if changes:
            required = self._append(changes, now_ms)
            for change in changes:
                self.draft.replay(change)
            self._proposals.append(Proposal(required, answer))
            self._answer()  # a quorum of one may have it already
        elif self._proposals:
            self._proposals.append(Proposal(self._proposals[-1].required_offset, answer))
        else:
            answer.complete(None)
        return answer

    def _append(self, changes: Sequence[MetadataRecord], now_ms: int) -> int:
        try:
            return self.raft.propose([encode(change) for change in changes], now_ms)
        except OSError as error:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refused metadata: {error}"
            ) from error

    def load_snapshot(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Start again from a snapshot."""
        image = Image()
        for key, value in records:
            image.replay(_known(decode(key, value)))
        self.image = image
        self._applied(self.raft.high_watermark)
        self._follower.metadata_changed(None)

    def committed(self, records: Sequence[tuple[bytes, bytes]], end_offset: int) -> None:
        """Apply one batch, and act on it."""
        changes = [_known(decode(key, value)) for key, value in records]
        for change in changes:
            self.image.replay(change)
        self._applied(end_offset)
        if changes:
            self._follower.metadata_changed(changes)
        self._answer()

    def _applied(self, end_offset: int) -> None:
        self.offset = end_offset
        if not self.raft.identity.cluster_id and self.image.cluster_id:
            self.raft.identity.cluster_id = self.image.cluster_id

    def became_active(self, epoch: int) -> None:
        """Become the active controller: the image has everything that was committed."""
        del epoch
        self.draft = self.image.fork()
        self._follower.became_controller()

    def resigned(self) -> None:
        """Stop being the active controller."""
        self.draft = None
        proposals, self._proposals = self._proposals, deque()
        for proposal in proposals:
            lost = "another node took over before the change was known to be committed"
            proposal.answer.fail(ApiError(ErrorCode.NOT_CONTROLLER, lost))
        self._follower.lost_control()

    def leader_changed(self) -> None:
        """Do nothing: the controller is looked up when a request needs it."""

    def snapshot(self) -> Iterable[tuple[bytes, bytes]]:
        """Return what was committed, in as few records as possible."""
        return map(encode, self.image.fork().snapshot())

    def _answer(self) -> None:
        while self._proposals and self._proposals[0].required_offset <= self.offset:
            self._proposals.popleft().answer.complete(None)


def _known(record: MetadataRecord) -> MetadataRecord:
    """Return a record; stop where records may follow that this release cannot read."""
    if isinstance(record, FeatureLevelChanged) and record.level > LATEST_LEVEL:
        raise TooOldError(f"the cluster's feature level is {record.level}; {INSTALL}")
    return record
