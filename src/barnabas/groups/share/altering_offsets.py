"""AlterShareGroupOffsets: sets where an empty share group begins to read.

The coordinator raises the group epoch, asks share coordinators to initialize the partitions anew
with the offsets, and stores that they are initialized. The group epoch is the epoch of the
initialized state: raising it fences leaders of partitions that still have the earlier state. Kafka
does not raise it here.

Heartbeats do not initialize partitions of the same topics meanwhile, so that a member that joins
cannot undo the change. If the coordinator moves in between, the client gets an error, and the
offsets may or may not be altered.
"""

from collections import Counter
from collections.abc import Callable

from barnabas.groups.directory import Directory
from barnabas.groups.share import share_group_records as records
from barnabas.groups.share.partition_states import TopicPart
from barnabas.groups.share.share_group import ShareGroup, existing
from barnabas.groups.share.state_requests import Answers, StateRequests
from barnabas.metadata.image import Image
from barnabas.model.coordination import Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

NONE = ErrorCode.NONE


class Alteration:
    """One request: its response so far, and the start offsets that are to be set."""

    def __init__(
        self, request: AlterShareGroupOffsetsRequest, group: ShareGroup, image: Image
    ) -> None:
        self.group_id = group.group_id
        self.epoch = group.epoch + 1
        self.starts: dict[TopicId, dict[int, int]] = {}
        self.answer: Pending[AlterShareGroupOffsetsResponse] = Pending()
        self._group = group
        self._image = image
        topics = [self._checked(asked) for asked in request.topics]
        self.response = AlterShareGroupOffsetsResponse(responses=topics)

    def take(self, answers: Answers) -> dict[TopicId, TopicPart]:
        """Put the answers of share coordinators into the response; return what they initialized."""
        done: dict[TopicId, TopicPart] = {}
        for topic in self.response.responses:
            codes = answers.get(TopicId(topic.topic_id), {})
            for part in topic.partitions:
                part.error_code = part.error_code or codes.get(part.partition_index, NONE)
            numbers = frozenset(
                part.partition_index for part in topic.partitions if not part.error_code
            )
            if numbers:
                done[TopicId(topic.topic_id)] = TopicPart(topic.topic_name, numbers)
        return done

    def _checked(
        self, asked: AlterShareGroupOffsetsRequestTopic
    ) -> AlterShareGroupOffsetsResponseTopic:
        """Return the answer for a topic, as far as it is known; keep its valid offsets."""
        found = self._image.topics.get(asked.topic_name)
        count = 0 if found is None else len(found.partitions)
        answer = AlterShareGroupOffsetsResponseTopic(topic_name=asked.topic_name)
        if found is not None:
            answer.topic_id = found.topic_id
        for part in asked.partitions:
            code, message = NONE, None
            if not 0 <= part.partition_index < count:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif part.start_offset < 0:
                code, message = ErrorCode.INVALID_REQUEST, "an offset must not be negative"
            elif found is not None and found.topic_id in self._group.states.deleting:
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
                message = "the offsets of this topic are being deleted; try again"
            elif found is not None:
                starts = self.starts.setdefault(found.topic_id, {})
                starts[part.partition_index] = part.start_offset
            answer.partitions.append(
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=part.partition_index, error_code=code, error_message=message
                )
            )
        return answer


class AlteringOffsets:
    """The alterations of one coordinator."""

    def __init__(
        self, requests: StateRequests, groups: Directory, image: Callable[[], Image]
    ) -> None:
        self._requests = requests
        self._groups = groups
        self._image = image
        self._under_way: Counter[tuple[str, TopicId]] = Counter()

    def is_under_way(self, group_id: str, topic_id: TopicId) -> bool:
        """Tell whether offsets of a group in a topic are being altered."""
        return self._under_way[group_id, topic_id] > 0

    def alter(
        self, request: AlterShareGroupOffsetsRequest
    ) -> Outcome[AlterShareGroupOffsetsResponse]:
        """Set start offsets; a group that does not exist is created, as in Kafka."""
        group_id = request.group_id
        is_new = group_id not in self._groups
        group = ShareGroup(group_id) if is_new else existing(self._groups, group_id)
        group.check_empty()
        change = Alteration(request, group, self._image())
        if not change.starts:
            return Outcome(change.response)
        self._under_way.update((group_id, topic_id) for topic_id in change.starts)
        return Outcome(
            change.answer,
            [records.group_epoch(group_id, change.epoch, group.metadata_hash)],
            committed=lambda: self._ask(change),
            refused=lambda _: self._release(change),
        )

    def _ask(self, change: Alteration) -> None:
        self._requests.initialize(
            change.group_id,
            change.starts,
            change.epoch,
            lambda answers: self._altered(change, answers),
        )

    def _altered(self, change: Alteration, answers: Answers) -> Outcome[None]:
        """Store which partitions are initialized, and answer the client."""
        self._release(change)
        group = self._groups.get(change.group_id)
        if not isinstance(group, ShareGroup):
            message = f"group {change.group_id} was deleted meanwhile"
            change.answer.fail(ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message))
            return Outcome(None)
        image = self._image()
        done = change.take(answers)
        known = {key: part for key, part in done.items() if image.topic_by_id(key) is not None}
        states = group.states.initialized_with(known)
        return Outcome(
            None,
            [records.partition_states(change.group_id, states)] if states != group.states else [],
            committed=lambda: change.answer.complete(change.response),
            refused=change.answer.fail,
        )

    def _release(self, change: Alteration) -> None:
        for topic_id in change.starts:
            self._under_way[change.group_id, topic_id] -= 1
        self._under_way = +self._under_way
        group = self._groups.get(change.group_id)
        if isinstance(group, ShareGroup):
            group.look_again()
