"""What a node does while it controls the cluster: every decision on metadata passes through here.

The decisions themselves are functions of the draft image (`controller/`). They return records,
which are proposed to the quorum, and a response, which goes once they are committed. Who was heard
of and when is not in the image: a controller that takes over gives each broker a whole session.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.controller import brokers, elections, reassignment
from barnabas.controller.features import check_registration
from barnabas.controller.growth import grow
from barnabas.controller.heartbeats import Heartbeats
from barnabas.controller.in_sync import alter_partition
from barnabas.effects import Notice
from barnabas.metadata.image import BROKER
from barnabas.metadata.records import (
    BrokerChanged,
    ClusterFormed,
    ConfigChanged,
    FeatureLevelChanged,
    MetadataRecord,
    ProducerIdsReserved,
)
from barnabas.model.errors import ApiError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer
from barnabas.node.probing import Probing
from barnabas.node.upgrading import Upgrading
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from barnabas.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

if TYPE_CHECKING:
    from barnabas.node.node import Node

T = TypeVar("T")

PRODUCER_ID_BLOCK = 1000
WATCH_MS = 100
"""How long after a deadline a broker that fell silent is fenced, at most."""
PROBE_MS = 250
GROW_MS = 1_000
"""How often missing replicas are looked for; a turn starts a bounded number of partitions."""
ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


class Controlling:
    """The controller's duties; none of them elsewhere than on the active controller."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._heartbeats = Heartbeats(node.settings.cluster.broker_session_timeout_ms)
        self._probing = Probing(node, self._fence_the_dead)
        self.upgrading = Upgrading(node)
        self._refused: dict[int, bytes] = {}
        """Brokers that are too old, each with the process of which the operator was told."""
        self._timers: list[Timer] = []

    def begin(self) -> None:
        """Take over: name the cluster where it has no name, and watch its brokers."""
        node = self._node
        self._heartbeats.begin(node.draft, node.timers.now_ms, node.quorum.raft.end_offset)
        if not node.draft.cluster_id:
            named = node.settings.cluster.cluster_id or self._new_cluster_id()
            self._propose([ClusterFormed(cluster_id=named)])
        if node.draft.last_broker_epoch < 0 and node.draft.feature_level < node.first_level:
            # No broker was ever part of it. In a batch of its own, since release 0.1.0 skips a
            # batch that it cannot read: it must not miss the cluster's name.
            self._propose([FeatureLevelChanged(level=node.first_level)])
        if not node.is_alone:
            self._every(WATCH_MS, self._fence_the_silent)
            self._every(PROBE_MS, self._probing.look_around)
            self._every(GROW_MS, self.grow)
            self._every(
                node.settings.cluster.leader_imbalance_check_interval_ms, self.prefer_leaders
            )

    def begin_alone(self, now_ms: int) -> None:
        """Register the only broker there is, before anybody is served."""
        node = self._node
        request = node.membership.registration()
        registration = brokers.register_alone(node.draft, request)
        if registration is None:  # it was part of a cluster once
            registration = brokers.register(
                node.draft, request, node.topic_defaults, in_session=False
            )
            node.commit(registration.records, now_ms)
            node.commit(brokers.unfence(node.draft, node.node_id, node.topic_defaults), now_ms)
        else:
            node.commit(registration.records, now_ms)
        node.membership.broker_epoch = registration.broker_epoch
        node.membership.is_active = True
        node.quorum.raft.commit_now()

    def end(self) -> None:
        """Another controls."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def register(self, request: BrokerRegistrationRequest) -> Pending[BrokerRegistrationResponse]:
        """Take in a broker's process."""
        node, now_ms = self._node, self._node.timers.now_ms
        self._check_level(request)
        registration = brokers.register(
            node.draft,
            request,
            node.topic_defaults,
            in_session=self._heartbeats.in_session(request.broker_id, now_ms),
        )
        answer = BrokerRegistrationResponse(broker_epoch=registration.broker_epoch)
        pending = self._decided(registration.records, answer)
        end_offset = node.quorum.raft.end_offset
        if registration.records:
            self._heartbeats.registered(request.broker_id, now_ms, end_offset)
        return pending

    def _check_level(self, request: BrokerRegistrationRequest) -> None:
        """Refuse a broker that is too old for the cluster, and say so once for each process."""
        draft = self._node.draft  # raises where another node controls the cluster
        try:
            check_registration(draft, request)
        except ApiError as error:
            if self._refused.get(request.broker_id) != request.incarnation_id:
                self._refused[request.broker_id] = request.incarnation_id
                facts = {"broker": request.broker_id, "problem": error.message}
                self._node.outbox.append(Notice("error", "a broker is too old", facts))
            raise

    def heartbeat(self, request: BrokerHeartbeatRequest) -> Pending[BrokerHeartbeatResponse]:
        """Hear of a broker: let it in, or let it go."""
        node = self._node
        self._probing.heard_of(request.broker_id)
        for broker, offset in node.quorum.raft.applied_offsets().items():
            self._heartbeats.applied(broker, offset)
        beat = self._heartbeats.heartbeat(
            node.draft,
            request,
            node.topic_defaults,
            now_ms=node.timers.now_ms,
            end_offset=node.quorum.raft.end_offset,
        )
        answer = self._decided(beat.records, beat.response)
        if any(isinstance(each, BrokerChanged) and not each.fenced for each in beat.records):
            self.grow()
        return answer

    def alter_partition(self, request: AlterPartitionRequest) -> Pending[AlterPartitionResponse]:
        """Decide on what a leader proposes as its in-sync replicas."""
        altered = alter_partition(self._node.draft, request, self._node.topic_defaults)
        return self._decided(altered.records, altered.response)

    def elect_leaders(self, request: ElectLeadersRequest) -> Pending[ElectLeadersResponse]:
        """Hold elections that an operator asks for."""
        elected = elections.elect_leaders(self._node.draft, request, self._node.topic_defaults)
        return self._decided(elected.records, elected.response)

    def reassign(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Pending[AlterPartitionReassignmentsResponse]:
        """Move replicas, or call that off."""
        moved = reassignment.alter_reassignments(
            self._node.draft, request, self._node.topic_defaults
        )
        return self._decided(moved.records, moved.response)

    def unregister(self, node_id: int) -> Pending[None]:
        """Strike a broker off."""
        records = brokers.unregister(self._node.draft, node_id, self._node.topic_defaults)
        self._heartbeats.forget(node_id)
        return self._decided(records, None)

    def change_configs(self, changes: Sequence[ConfigChanged], now_ms: int) -> Pending[None]:
        """Change configs, and with them what depends on them: who may lead, and when."""
        node = self._node
        after = node.draft.fork()
        for change in changes:
            after.replay(change)
        every_topic = any(change.kind == BROKER for change in changes)
        names = after.topics if every_topic else [change.name for change in changes]
        settled = elections.configs_changed(after, list(names), node.defaults_of(after))
        return node.commit([*changes, *settled], now_ms)

    def reserve_producer_ids(self, now_ms: int) -> Pending[range]:
        """Set a block of producer ids apart."""
        start = self._node.draft.next_producer_id
        end = start + PRODUCER_ID_BLOCK
        reserved = self._node.commit([ProducerIdsReserved(next_producer_id=end)], now_ms)
        return reserved.map(lambda _: range(start, end))

    def _decided(self, records: Sequence[MetadataRecord], response: T) -> Pending[T]:
        """Return the response for when the records are committed."""
        return self._node.commit(records, self._node.timers.wall_ms).map(lambda _: response)

    def _fence_the_silent(self) -> None:
        node = self._node
        for broker in self._heartbeats.due(node.draft, node.timers.now_ms):
            node.outbox.append(Notice("warning", "a broker fell silent", {"broker": broker}))
            self._fence(broker)

    def _fence_the_dead(self, broker: NodeId) -> None:
        known = self._node.draft.brokers.get(broker)
        if known is not None and not known.fenced:
            facts = {"broker": broker}
            self._node.outbox.append(Notice("warning", "a broker's process is gone", facts))
            self._fence(broker)

    def _fence(self, broker: int) -> None:
        node = self._node
        end_offset = node.quorum.raft.end_offset
        self._propose(self._heartbeats.expire(node.draft, broker, node.topic_defaults, end_offset))

    def prefer_leaders(self) -> None:
        """Give partitions back to the brokers that were chosen to lead them."""
        node = self._node
        self._propose(elections.prefer_first_replicas(node.draft, node.topic_defaults))

    def grow(self) -> None:
        """Add replicas that topics lack because brokers were down when they were made."""
        node = self._node
        self._propose(grow(node.draft, node.topic_defaults))

    def _propose(self, records: Sequence[MetadataRecord]) -> None:
        """Propose what nobody asked for; where the disk refuses, the next turn tries again."""
        if not records:
            return
        try:
            self._node.commit(records, self._node.timers.wall_ms)
        except ApiError as error:
            facts = {"problem": error.message}
            self._node.outbox.append(Notice("error", "the controller cannot decide", facts))

    def _every(self, interval_ms: int, duty: Callable[[], None]) -> None:
        if not interval_ms:
            return
        timers = self._node.timers

        def turn() -> None:
            if self._node.is_controller:
                self._timers[place] = timers.after(interval_ms, turn)
                duty()

        place = len(self._timers)
        self._timers.append(timers.after(interval_ms, turn))

    def _new_cluster_id(self) -> str:
        return "".join(self._node.rng.choice(ID_ALPHABET) for _ in range(22))
