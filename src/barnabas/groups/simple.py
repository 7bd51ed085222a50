"""A group without members that only stores offsets.

Consumers that choose their partitions themselves, and tools, commit in the name of such a group.
Kafka calls it simple: an empty classic group without a protocol type. The group itself has no
record; it exists from the first stored offset on, and is replaced as soon as a client joins.
"""

from collections.abc import Collection

from barnabas.groups.directory import GroupType
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.coordinator_codec import encode
from barnabas.protocol.coordinator_records.group_metadata import GroupMetadataKey


class SimpleGroup:
    """A name with offsets."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    @property
    def type(self) -> GroupType:
        """The type that clients get."""
        return GroupType.CLASSIC

    @property
    def state(self) -> str:
        """It never has members."""
        return "Empty"

    @property
    def protocol_type(self) -> str:
        """Empty: no member has named a protocol."""
        return ""

    @property
    def is_empty(self) -> bool:
        """It never has members."""
        return True

    @property
    def empty_since_ms(self) -> int | None:
        """None: there were never members, so the retention of each offset starts at its commit."""
        return None

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> None:
        """Refuse a client that names a member id."""
        if epoch >= 0:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"{self.group_id} has no members")

    def may_commit_late(
        self, member_id: str, epoch: int, partitions: Collection[TopicPartition]
    ) -> bool:
        """Return False: an earlier generation may never commit."""
        return False

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Let any client read."""

    def touch(self, member_id: str) -> None:
        """Do nothing: there are no members."""

    def subscribes_to(self, topic: str) -> bool:
        """Return False: no member subscribes."""
        return False

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the same record that ends any classic group."""
        return [encode(GroupMetadataKey(group=self.group_id), None)]
