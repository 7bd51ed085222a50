"""All share partitions of a broker: those of the partitions that it leads."""

from collections.abc import Callable, Iterator

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.share_state import SharePartitionKey, ShareStates
from barnabas.model.timers import Timers
from barnabas.node.partitions.partition import Partition
from barnabas.node.share.dead_letter_topics import DeadLetterTopics
from barnabas.node.share.share_partition import SharePartition, ShareRules
from barnabas.node.share.share_sessions import Owner, Place

Find = Callable[[TopicId, int], Partition]
"""Returns a partition that this broker leads, or raises `ApiError`."""


class SharePartitions:
    """Makes share partitions when members ask for them, and keeps them while they are current."""

    def __init__(
        self,
        find: Find,
        states: ShareStates,
        timers: Timers,
        rules: Callable[[str], ShareRules],
        first_offset: Callable[[str, Partition], Pending[int]],
        dead_letters: DeadLetterTopics | None = None,
    ) -> None:
        self._find = find
        self._states = states
        self._timers = timers
        self._rules = rules
        self._first_offset = first_offset
        self._dead_letters = dead_letters
        self._by_key: dict[SharePartitionKey, SharePartition] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[SharePartition]:
        yield from self._by_key.values()

    def get(self, key: SharePartitionKey) -> SharePartition | None:
        """Return a share partition that was made already, even if it has ended since."""
        return self._by_key.get(key)

    def find(self, group_id: str, place: Place) -> SharePartition:
        """Return a share partition, which may not have its state yet.

        Raises `ApiError` if this broker does not lead it, and once if its state cannot be read.
        """
        partition = self._find(place.topic_id, place.partition)
        if partition.internal:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        key = SharePartitionKey(group_id, place.topic_id, place.partition)
        found = self._by_key.get(key)
        if found is not None and found.is_current and found.partition is partition:
            found.is_unused = False
            return found
        if found is not None and found.error not in (None, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            del self._by_key[key]
            raise ApiError(found.error)
        made = self._by_key[key] = SharePartition(
            key,
            partition,
            self._states,
            self._timers,
            lambda: self._rules(group_id),
            lambda partition: self._first_offset(group_id, partition),
            self._dead_letters,
        )
        return made

    def known(self, group_id: str, place: Place) -> SharePartition:
        """Return a share partition that a member has fetched from; raise `ApiError`."""
        self._find(place.topic_id, place.partition)
        key = SharePartitionKey(group_id, place.topic_id, place.partition)
        found = self._by_key.get(key)
        if found is None or not found.is_current:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, "this broker has only begun to lead")
        return found

    def dead_letters_of(self, group_id: str) -> tuple[int, int]:
        """Return how many dead letters of a group were written, and how many were given up.

        Of the partitions that this broker leads, since it began to lead them.
        """
        senders = [
            each.sender
            for key, each in self._by_key.items()
            if key.group_id == group_id and each.sender is not None
        ]
        return sum(each.sent for each in senders), sum(each.given_up for each in senders)

    def release(self, owner: Owner) -> None:
        """Give back what a member holds in all partitions of its group; forget what has ended."""
        for key, found in list(self._by_key.items()):
            if found.error is not None or found.partition.retired:
                del self._by_key[key]
            elif key.group_id == owner.group_id:
                found.release(owner.member_id)

    def forget_when_idle(self, group_id: str) -> None:
        """Forget the windows of a group without members here, once what they know is stored.

        Its next member begins with the stored state, which the operator may have changed meanwhile.
        """
        for key, found in list(self._by_key.items()):
            if key.group_id == group_id:
                found.retire_when_idle()
