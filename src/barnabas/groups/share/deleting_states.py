"""Deletes delivery state: of topics (DeleteShareGroupOffsets), or of a group with the group.

The group must be empty. The coordinator stores that the topics are being deleted, asks share
coordinators to delete their state, and then stores that it is gone. If that is interrupted,
`settling.py` completes it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from barnabas.groups.directory import Directory
from barnabas.groups.share import share_group_records as records
from barnabas.groups.share.partition_states import PartitionStates
from barnabas.groups.share.settling import Settling, all_partitions
from barnabas.groups.share.share_group import ShareGroup, existing
from barnabas.groups.share.state_requests import Answers, Continue, StateRequests, failure_in
from barnabas.metadata.image import Image
from barnabas.model.coordination import CoordinatorRecord, Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

R = TypeVar("R")


class DeletingStates:
    """The deletions of one coordinator."""

    def __init__(
        self,
        requests: StateRequests,
        settling: Settling,
        groups: Directory,
        image: Callable[[], Image],
    ) -> None:
        self._requests = requests
        self._settling = settling
        self._groups = groups
        self._image = image

    def delete(
        self, request: DeleteShareGroupOffsetsRequest
    ) -> Outcome[DeleteShareGroupOffsetsResponse]:
        """Delete all state of some topics."""
        group = existing(self._groups, request.group_id)
        group.check_empty()
        names = dict.fromkeys(topic.topic_name for topic in request.topics)
        topics = [self._found(group.states, name) for name in names]
        response = DeleteShareGroupOffsetsResponse(responses=topics)
        found = {TopicId(t.topic_id): t.topic_name for t in topics if not t.error_code}
        if not found:
            return Outcome(response)
        answer: Pending[DeleteShareGroupOffsetsResponse] = Pending()

        def deleted(answers: Answers) -> Outcome[None]:
            if self._groups.get(group.group_id) is not group:
                return _fail(answer, group)
            for topic in topics:
                code = failure_in(answers.get(TopicId(topic.topic_id), {}))
                topic.error_code = topic.error_code or code
            stored = [records.partition_states(group.group_id, self._left(group, answers))]
            return Outcome(
                None, stored, committed=lambda: answer.complete(response), refused=answer.fail
            )

        return self._begin(group, found, answer, deleted)

    def delete_group(self, group: ShareGroup) -> Outcome[ErrorCode]:
        """Delete a group, and all its state."""
        group.check_empty()
        if not group.states.names():
            return Outcome(ErrorCode.NONE, group.tombstones())
        answer: Pending[ErrorCode] = Pending()

        def deleted(answers: Answers) -> Outcome[None]:
            if self._groups.get(group.group_id) is not group:
                return _fail(answer, group)
            code = next(filter(None, map(failure_in, answers.values())), ErrorCode.NONE)
            left = self._left(group, answers)
            stored = [records.partition_states(group.group_id, left)]
            if not code and group.members:
                code = ErrorCode.NON_EMPTY_GROUP  # a member joined meanwhile
            if not code:
                stored = group.tombstones()
            return Outcome(
                None, stored, committed=lambda: answer.complete(code), refused=answer.fail
            )

        return self._begin(group, group.states.names(), answer, deleted)

    def forget_topics(self, names: Sequence[str]) -> list[CoordinatorRecord]:
        """Return the records that forget deleted topics; share coordinators do so themselves."""
        groups = self._groups.values() if names else ()
        return [
            records.partition_states(group.group_id, group.states.without(gone))
            for group in groups
            if isinstance(group, ShareGroup) and (gone := self._gone(group.states, names))
        ]

    def _found(self, states: PartitionStates, name: str) -> DeleteShareGroupOffsetsResponseTopic:
        """Return the answer for a topic, as far as it is known."""
        answer = DeleteShareGroupOffsetsResponseTopic(topic_name=name)
        topic = self._image().topics.get(name)
        if topic is not None and topic.topic_id in states.names():
            answer.topic_id = topic.topic_id
            return answer
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is not None:
            answer.error_message = f"the group has no state of topic {name}"
        return answer

    def _begin(
        self, group: ShareGroup, topics: Mapping[TopicId, str], answer: Pending[R], then: Continue
    ) -> Outcome[R]:
        """Store that topics are being deleted, then ask."""
        group_id, wanted = group.group_id, self._partitions(topics)

        def ask() -> None:
            self._settling.watch(group)
            self._requests.delete(group_id, wanted, then)

        stored: list[CoordinatorRecord] = [
            records.partition_states(group_id, group.states.deletion_begun(topics))
        ]
        return Outcome(answer, stored, committed=ask)

    def _partitions(self, topics: Collection[TopicId]) -> dict[TopicId, Collection[int]]:
        """Return the partitions that a deletion is about; none of a topic that was deleted."""
        return {**dict.fromkeys(topics, ()), **all_partitions(topics, self._image())}

    def _left(self, group: ShareGroup, answers: Answers) -> PartitionStates:
        """Return the partition states after a deletion; the rest of it is retried."""
        done = [topic_id for topic_id, codes in answers.items() if not failure_in(codes)]
        if len(done) < len(answers):
            self._settling.retry_soon(group)
        return group.states.deletion_done(done)

    def _gone(self, states: PartitionStates, names: Sequence[str]) -> list[TopicId]:
        """Return the topics of a group that were deleted."""
        image = self._image()
        return [
            topic_id
            for topic_id, name in states.names().items()
            if name in names and image.topic_by_id(topic_id) is None
        ]


def _fail(answer: Pending[Any], group: ShareGroup) -> Outcome[None]:
    message = f"group {group.group_id} was deleted meanwhile"
    answer.fail(ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message))
    return Outcome(None)
