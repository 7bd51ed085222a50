"""SyncGroup: the leader sends the assignments, and members fetch theirs.

The assignments are stored as one record of the whole group. Once it is committed, each member gets
its assignment and the group is stable. If it cannot be written, no member gets one, and all rejoin.
"""

from barnabas.groups.classic.classic_group import ClassicGroup, State
from barnabas.groups.classic.rebalances import Rebalances
from barnabas.groups.classic.stored import group_record
from barnabas.model.coordination import Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Answer = Outcome[SyncGroupResponse]


class Syncing:
    """The rules of SyncGroup."""

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    def sync(self, group: ClassicGroup, request: SyncGroupRequest) -> Answer:
        """Answer a member with its assignment, now or when there is one."""
        member_id = request.member_id
        group.check_generation(member_id, request.group_instance_id, request.generation_id)
        _check_protocol(group, request)
        if group.state is State.PREPARING:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._rebalances.synced(group, member_id)
        if group.state is State.STABLE:
            return Outcome(group.synced(member_id))
        answer = group.wait_to_sync(member_id)
        if member_id != group.leader or group.is_storing:
            return Outcome(answer)
        return self._store(group, request, Outcome(answer))

    def _store(self, group: ClassicGroup, request: SyncGroupRequest, answer: Answer) -> Answer:
        """Store the leader's assignments; a member that it omitted gets an empty one."""
        generation = group.generation
        group.is_storing = True
        answer.records = [
            group_record(group, {each.member_id: each.assignment for each in request.assignments})
        ]
        answer.committed = lambda: self._committed(group, generation)
        answer.refused = lambda error: self._refused(group, error)
        return answer

    def _committed(self, group: ClassicGroup, generation: int) -> None:
        """Send the assignments, unless another rebalance began meanwhile."""
        if group.state is State.COMPLETING and group.generation == generation:
            self._rebalances.hand_out(group)

    def _refused(self, group: ClassicGroup, error: ApiError) -> None:
        self._rebalances.drop_assignments(group, _told(error.code))
        self._rebalances.prepare(group)


def _check_protocol(group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Raise if a member names another protocol (from version 5 on, KIP-559)."""
    if request.protocol_type not in {None, group.protocol_type}:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.protocol_name not in {None, group.protocol}:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _told(code: ErrorCode) -> ErrorCode:
    """Return the error for members after a write that failed; most errors mean: join again."""
    if code is ErrorCode.KAFKA_STORAGE_ERROR:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code
