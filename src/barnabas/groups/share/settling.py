"""Carries out what the partition states of a share group say is under way.

Partitions that are being initialized, and topics whose state is being deleted, are stored before a
share coordinator is asked. What it refuses is retried soon, with growing delays; what it does not
answer is retried after 30 seconds, as in Kafka. A coordinator that takes over retries everything at
once. Initializing and deleting are idempotent.
"""

from collections.abc import Callable, Collection

from barnabas.groups.directory import Directory
from barnabas.groups.share import share_group_records as records
from barnabas.groups.share.partition_states import PartitionStates, Parts
from barnabas.groups.share.share_group import ShareGroup
from barnabas.groups.share.state_requests import AT_ONCE_MS, Answers, StateRequests, failure_in
from barnabas.metadata.image import Image
from barnabas.model.coordination import Outcome, Scheduler
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.share_state import UNKNOWN_OFFSET

UNANSWERED_MS = 30_000
"""When a request that was not answered is retried."""
REFUSED_MS = 1_000
"""When a request that was refused is retried for the first time."""


class Settling:
    """The groups of one coordinator whose partition states are not settled."""

    def __init__(
        self,
        requests: StateRequests,
        scheduler: Scheduler,
        groups: Directory,
        image: Callable[[], Image],
    ) -> None:
        self._requests = requests
        self._scheduler = scheduler
        self._groups = groups
        self._image = image

    def initialize(self, group: ShareGroup, parts: Parts) -> None:
        """Initialize partitions that are stored as being initialized."""
        self.watch(group)
        starts = {
            topic_id: dict.fromkeys(sorted(part.partitions), UNKNOWN_OFFSET)
            for topic_id, part in parts.items()
        }
        self._requests.initialize(
            group.group_id, starts, group.epoch, lambda answers: self._initialized(group, answers)
        )

    def retry_soon(self, group: ShareGroup) -> None:
        """Retry what a share coordinator has refused."""
        delay_ms = min(REFUSED_MS << min(group.failures, 5), UNANSWERED_MS)
        group.failures += 1
        self._retry_after(group, delay_ms)

    def loaded(self) -> None:
        """Retry everything: the previous coordinator cannot tell how far it came."""
        for group in self._groups.values():
            if isinstance(group, ShareGroup) and not group.states.is_settled:
                self._retry_after(group, AT_ONCE_MS)

    def watch(self, group: ShareGroup) -> None:
        """Retry later what is under way, in case that it is not answered."""
        self._retry_after(group, UNANSWERED_MS)

    def _retry_after(self, group: ShareGroup, delay_ms: int) -> None:
        self._scheduler.schedule(_name(group), delay_ms, lambda: self._retry(group))

    def _retry(self, group: ShareGroup) -> Outcome[None]:
        """Ask again; what belongs to topics that were deleted is forgotten."""
        if not self._exists(group):
            return Outcome(None)
        image, states = self._image(), group.states
        topics = {*states.initializing, *states.deleting}
        gone = [topic_id for topic_id in topics if image.topic_by_id(topic_id) is None]
        left = states.abandoned(gone)
        if left.initializing:
            self.initialize(group, left.initializing)
        self._delete(group, left.deleting)
        return self._stored(group, left)

    def _delete(self, group: ShareGroup, topics: Collection[TopicId]) -> None:
        if topics:
            self.watch(group)
            self._requests.delete(
                group.group_id,
                all_partitions(topics, self._image()),
                lambda answers: self._deleted(group, answers),
            )

    def _initialized(self, group: ShareGroup, answers: Answers) -> Outcome[None]:
        """Store what was initialized, and retry the rest."""
        states = group.states
        for topic_id, codes in answers.items():
            done = [number for number, code in codes.items() if code is ErrorCode.NONE]
            states = states.answered(topic_id, done)
        return self._continue(group, states, answers)

    def _deleted(self, group: ShareGroup, answers: Answers) -> Outcome[None]:
        """Store what was deleted, and retry the rest."""
        done = [topic_id for topic_id, codes in answers.items() if not failure_in(codes)]
        return self._continue(group, group.states.deletion_done(done), answers)

    def _continue(
        self, group: ShareGroup, states: PartitionStates, answers: Answers
    ) -> Outcome[None]:
        if not self._exists(group):
            return Outcome(None)  # it was deleted meanwhile
        if any(failure_in(codes) for codes in answers.values()):
            self.retry_soon(group)
        else:
            group.failures = 0
        return self._stored(group, states)

    def _stored(self, group: ShareGroup, states: PartitionStates) -> Outcome[None]:
        if states == group.states:
            return Outcome(None)
        return Outcome(
            None,
            [records.partition_states(group.group_id, states)],
            refused=lambda _: self.retry_soon(group),
        )

    def _exists(self, group: ShareGroup) -> bool:
        return self._groups.get(group.group_id) is group


def all_partitions(topics: Collection[TopicId], image: Image) -> dict[TopicId, range]:
    """Return the partitions of topics that exist."""
    found = ((topic_id, image.topic_by_id(topic_id)) for topic_id in topics)
    return {
        topic_id: range(len(topic.partitions)) for topic_id, topic in found if topic is not None
    }


def _name(group: ShareGroup) -> str:
    return f"share states of {group.group_id!r}"
