"""One member of a share group, without sockets: which heartbeat to send, and what it is assigned.

    outside --heartbeat, epoch 0--> member --heartbeat, its epoch--> member
    member --fenced or unknown--> outside;  member --heartbeat, epoch -1--> left

A member generates its own id and keeps it. The coordinator sends an assignment only when it has
changed.
"""

import base64
import uuid
from enum import Enum

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.wire.share_values import Place

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
RETRY_S = 0.2
"""The pause after an error that passes."""

LOST_COORDINATOR = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
FENCED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
"""The coordinator does not know the member. A group that is not found refuses a member that joins:
it is a group of consumers."""
PASSING = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT}


class Step(Enum):
    """What to do after a response."""

    GO_ON = "go on"
    FIND_COORDINATOR = "find coordinator"
    FAIL = "fail"
    """The group can never accept this member as it is."""


class ShareMembership:
    """The epoch and the assignment of one member."""

    def __init__(self, group: str, topics: list[str], member_id: str | None = None) -> None:
        self._group, self._topics = group, topics
        self._epoch = JOIN_EPOCH
        self.member_id = member_id or new_member_id()
        self.assigned: frozenset[Place] = frozenset()
        """The partitions that the member reads."""
        self.wait_s = 0.0
        """When to send the next heartbeat, from the last response on."""

    @property
    def is_member(self) -> bool:
        """Whether the coordinator knows the member."""
        return self._epoch > JOIN_EPOCH

    def heartbeat(self) -> ShareGroupHeartbeatRequest:
        """Return the next heartbeat, which joins if this is no member yet."""
        return ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self.member_id,
            member_epoch=self._epoch,
            subscribed_topic_names=None if self.is_member else self._topics,
        )

    def leave(self) -> ShareGroupHeartbeatRequest:
        """Return the last heartbeat."""
        return ShareGroupHeartbeatRequest(
            group_id=self._group, member_id=self.member_id, member_epoch=LEAVE_EPOCH
        )

    def answered(self, response: ShareGroupHeartbeatResponse) -> Step:
        """Take a response."""
        code = response.error_code
        if code == ErrorCode.NONE:
            self._epoch = response.member_epoch
            self.wait_s = response.heartbeat_interval_ms / 1000
            if response.assignment is not None:
                self.assigned = frozenset(
                    Place(topic.topic_id, number)
                    for topic in response.assignment.topic_partitions
                    for number in topic.partitions
                )
            return Step.GO_ON
        self.wait_s = RETRY_S
        if code in FENCED and not (code == ErrorCode.GROUP_ID_NOT_FOUND and not self.is_member):
            self.fenced()
            self.wait_s = 0.0
            return Step.GO_ON
        if code in LOST_COORDINATOR:
            return Step.FIND_COORDINATOR
        return Step.GO_ON if code in PASSING else Step.FAIL

    def fenced(self) -> None:
        """Join again with the next heartbeat; the brokers have given the records to others."""
        self._epoch = JOIN_EPOCH
        self.assigned = frozenset()


def new_member_id() -> str:
    """Return a random id in Kafka's form of a UUID."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
