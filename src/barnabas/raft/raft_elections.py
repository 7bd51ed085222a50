"""Elections of the metadata quorum: this node's role, its epoch, and which leader it knows.

    Elections        changes the role; saves the epoch and the vote before anything depends on them
      role           the node's present role (`raft_roles.py`)
      state          the epoch, the vote and the leader (`quorum_state.py`)

A node with several voters starts as unattached or as a follower. A pre-vote and then a vote make it
leader; news of a later epoch makes it a follower or unattached again.
"""

from collections.abc import Sequence

from barnabas.model.ids import NodeId
from barnabas.raft.commit_listener import RaftListener
from barnabas.raft.committed_records import CommittedRecords, CommitTimes
from barnabas.raft.electing import Candidate, Prospective, Resigned, Unattached
from barnabas.raft.environment import Environment
from barnabas.raft.identity import Identity
from barnabas.raft.known_voters import KnownVoters
from barnabas.raft.leading import Leader
from barnabas.raft.messages import Leadership, LogEnd
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.quorum_state import EpochState, QuorumState
from barnabas.raft.raft_following import Follower
from barnabas.raft.raft_roles import Halted, Role


class Elections:
    """Decides which role this node has in the quorum."""

    def __init__(
        self,
        *,
        identity: Identity,
        voters: KnownVoters,
        state: EpochState,
        log: MetadataLog,
        committed: CommittedRecords,
        environment: Environment,
        listener: RaftListener,
    ) -> None:
        self.identity = identity
        self.voters = voters
        self.state = state
        self.log = log
        self.committed = committed
        self.environment = environment
        self.listener = listener
        self.lost_elections = 0
        """How many candidacies of this node failed since it last knew a leader."""
        self.commit_times = CommitTimes()
        self.role: Role = Halted(self)
        self._reported_leader_id: NodeId | None = None

    @property
    def epoch(self) -> int:
        """The latest epoch that this node knows of."""
        return self.state.current.epoch

    @property
    def leader_id(self) -> NodeId | None:
        """The leader of this epoch, if this node knows it."""
        return self.state.current.leader_id

    @property
    def leader(self) -> Leader | None:
        """The role of leader, if this node has it."""
        return self.role if isinstance(self.role, Leader) else None

    @property
    def is_leader(self) -> bool:
        """Whether this node leads."""
        return isinstance(self.role, Leader)

    @property
    def is_active(self) -> bool:
        """Whether this node leads and its epoch's first record is committed."""
        return isinstance(self.role, Leader) and self.role.active

    @property
    def leadership(self) -> Leadership:
        """The leader with its address, as responses name it."""
        if self.leader_id is None:
            return Leadership(self.epoch, None)
        own = self.leader_id == self.identity.node_id
        address = self.identity.address if own else self.voters.address_of(self.leader_id)
        return Leadership(self.epoch, self.leader_id, address)

    @property
    def log_end(self) -> LogEnd:
        """How up to date this node's log is."""
        return LogEnd(self.log.last_epoch, self.log.end_offset)

    def start(self) -> None:
        """Take part in the quorum. A node that is the only voter becomes leader at once."""
        if self.leader_id == self.identity.node_id:
            self.state.forget_leader()
        if self.voters.are_this_node_alone:
            self.start_candidacy()
        elif self.leader_id is not None and self.voters.address_of(self.leader_id) is not None:
            self.become(Follower(self))
        else:
            self.state.forget_leader()
            wait_ms = self.environment.timeouts.draw_first_election_ms()
            self.become(Unattached(self, wait_ms))

    def become(self, role: Role) -> None:
        """Change the role; the old role answers the requests that wait in it."""
        old, self.role = self.role, role
        old.leave()
        if isinstance(old, Leader):
            self.listener.resigned()
        if self.leader_id is not None:
            self.lost_elections = 0
        if self._reported_leader_id != self.leader_id:
            self._reported_leader_id = self.leader_id
            self.listener.leader_changed()
        if self.role is role:
            role.enter()

    def expects(self, role: Role) -> bool:
        """Whether a response to a request that was sent in a role is still wanted."""
        return role is self.role

    def log_flushed(self) -> None:
        """Act on a finished sync of the log."""
        self.role.flushed()

    def learn(self, named: Leadership, sender: NodeId | None = None) -> bool:
        """Take in which leader another node names; return whether that changed the role."""
        if named.leader_id is not None and named.address is not None:
            self.voters.learn_address(named.leader_id, named.address)
        leader = named.leader_id
        is_self = leader == self.identity.node_id
        if is_self or (leader is not None and self.voters.address_of(leader) is None):
            leader = None
        if named.epoch > self.epoch:
            wait_ms = self.election_wait_left()
            self.state.save(QuorumState(named.epoch, leader))
            self.become(Unattached(self, wait_ms) if leader is None else Follower(self))
            return True
        if named.epoch < self.epoch or leader is None or self.leader_id is not None:
            return False
        if isinstance(self.role, Leader | Resigned | Halted):
            return False
        if sender != leader and self.state.is_missed(leader):
            return False
        self.state.save(self.state.current._replace(leader_id=leader))
        self.become(Follower(self))
        return True

    def ask_for_pre_votes(self) -> None:
        """Start an election if this node votes. An observer looks for a leader instead."""
        is_voter = self.voters.include_this_node
        self.become(Prospective(self) if is_voter else Unattached(self))

    def start_candidacy(self) -> None:
        """Begin a new epoch; this node's vote for itself is on disk first."""
        self.state.save(QuorumState(self.epoch + 1, None, self.identity.key))
        self.become(Candidate(self))

    def lead(self, granted: Sequence[NodeId]) -> None:
        """Become the leader of this epoch."""
        self.state.save(self.state.current._replace(leader_id=self.identity.node_id))
        self.become(Leader(self, granted))

    def resign(self) -> None:
        """Give up leadership, and ask the other voters to elect a leader at once.

        A node that is the only voter stays leader.
        """
        leader = self.leader
        if leader is None or self.voters.are_this_node_alone:
            return
        successors = leader.successors()
        self.state.forget_leader()
        self.become(Resigned(self, successors))

    def leader_resigned(self, wait_ms: int | None) -> None:
        """Prepare an election after the leader resigned: at once, or after a wait."""
        self.state.forget_leader()
        if wait_ms == 0 and self.voters.include_this_node:
            self.become(Prospective(self))
        else:
            self.become(Unattached(self, wait_ms))

    def election_wait_left(self) -> int | None:
        """Return what is left of the wait for an election.

        A new epoch must not restart the wait, or later epochs could delay an election forever.
        """
        role = self.role
        if isinstance(role, Unattached):
            return max(1, role.deadline_ms - self.environment.timers.now_ms)
        return None
