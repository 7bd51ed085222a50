"""The duties of the active controller: every decision on metadata is made here.

The decisions themselves are functions of the draft image (`controller/`). They return records,
which are proposed to the quorum, and a response, which is sent once they are committed. Times of
heartbeats are not in the image: a new controller gives each broker a whole session.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol, TypeVar

from barnabas.controller import brokers, elections, reassignment
from barnabas.controller.credentials import (
    Mechanism,
    alter_credentials,
    cluster_secret,
    first_credentials,
)
from barnabas.controller.feature_decisions import check_registration
from barnabas.controller.growth import grow
from barnabas.controller.heartbeats import Heartbeats
from barnabas.controller.isr_decisions import alter_partition
from barnabas.controller.token_decisions import expired_tokens
from barnabas.effects import Effect, Notice
from barnabas.metadata.features import SECURITY_LEVEL
from barnabas.metadata.image import BROKER, TOPIC, Image
from barnabas.metadata.metadata_records import (
    BrokerChanged,
    ClusterFormed,
    ConfigChanged,
    FeatureLevelChanged,
    MetadataRecord,
    PartitionChanged,
    ProducerIdsReserved,
)
from barnabas.model.errors import ApiError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.settings import Settings
from barnabas.model.timers import Timer, Timers
from barnabas.node.cluster.broker_lifecycle import Membership
from barnabas.node.cluster.broker_probing import Probing
from barnabas.node.cluster.feature_upgrade import Upgrading
from barnabas.node.cluster.metadata_quorum import Quorum
from barnabas.node.cluster.peer_requests import Peers
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
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
from barnabas.security.authentication import Authentication
from barnabas.security.scram_formulas import SCRAM_BY_CODE, ScramMechanism, keys_of

T = TypeVar("T")

PRODUCER_ID_BLOCK = 1000
WATCH_MS = 100
"""How long after its deadline a broker without heartbeats is fenced, at most."""
PROBE_MS = 250
GROW_MS = 1_000
"""How often missing replicas are looked for; a turn starts a bounded number of partitions."""
ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def _known_to_controller(mechanism: ScramMechanism) -> Mechanism:
    def both(salted_password: bytes) -> tuple[bytes, bytes]:
        keys = keys_of(mechanism, salted_password)
        return keys.stored_key, keys.server_key

    return Mechanism(mechanism.name, both)


MECHANISMS = {code: _known_to_controller(each) for code, each in SCRAM_BY_CODE.items()}


class ControllerHost(Protocol):
    """What the controller needs from the node that it runs on."""

    @property
    def authentication(self) -> Authentication:
        """How clients authenticate, and where secrets come from."""

    @property
    def is_alone(self) -> bool:
        """Whether this node is a cluster by itself."""

    @property
    def first_level(self) -> int:
        """The feature level of a cluster that this node forms."""

    @property
    def topic_defaults(self) -> dict[str, str]:
        """The configs that topics inherit."""

    def defaults_of(self, image: Image) -> dict[str, str]:
        """Return the configs that topics inherit with this metadata."""

    def commit(self, changes: Sequence[MetadataRecord], now_ms: int) -> Pending[None]:
        """Write metadata."""


class Controlling:
    """The duties of the active controller."""

    def __init__(
        self,
        host: ControllerHost,
        settings: Settings,
        quorum: Quorum,
        peers: Peers,
        timers: Timers,
        outbox: list[Effect],
        rng: Random,
    ) -> None:
        me, session_ms = settings.broker.node_id, settings.cluster.broker_session_timeout_ms
        self._host = host
        self._settings = settings.cluster
        self._token_check_ms = settings.security.delegation_token_expiry_check_ms
        self._quorum = quorum
        self._timers = timers
        self._outbox = outbox
        self._rng = rng
        self._heartbeats = Heartbeats(session_ms)
        self._probing = Probing(me, session_ms, quorum, peers, timers, self._fence_gone)
        self.upgrading = Upgrading(me, quorum, peers, timers, outbox, host.commit)
        self._refused: dict[int, bytes] = {}
        """Brokers that are too old, each with the incarnation that was reported to the operator."""
        self._duties: list[Timer] = []
        self.unclean_elections = 0
        """Leaders that were elected out of sync while this node was the controller."""

    @property
    def _draft(self) -> Image:
        return self._quorum.require_draft()

    def begin(self) -> None:
        """Become the controller: give a new cluster its id, and watch the brokers."""
        self._heartbeats.begin(self._draft, self._timers.now_ms, self._quorum.raft.end_offset)
        if not self._draft.cluster_id:
            named = self._settings.cluster_id or self._new_cluster_id()
            self._propose([ClusterFormed(cluster_id=named)])
        if self._draft.last_broker_epoch < 0 and self._draft.feature_level < self._host.first_level:
            # No broker was ever part of it. This record has a batch of its own, since release 0.1.0
            # skips a batch that it cannot read, and must not skip the cluster's name.
            self._propose([FeatureLevelChanged(level=self._host.first_level)])
        self._secure()
        self._every(self._token_check_ms, self.remove_expired_tokens)
        if not self._host.is_alone:
            self._every(WATCH_MS, self._fence_expired)
            self._every(PROBE_MS, self._probing.probe_all)
            self._every(GROW_MS, self.grow)
            self._every(self._settings.leader_imbalance_check_interval_ms, self.prefer_leaders)

    def count_unclean(self, changes: Sequence[MetadataRecord]) -> None:
        """Count the leaders among proposed records that are elected though they lack records."""
        draft = self._quorum.draft
        for change in changes if draft is not None else ():
            if not isinstance(change, PartitionChanged) or not change.unclean or change.leader < 0:
                continue
            topic = None if draft is None else draft.topic_by_id(bytes.fromhex(change.topic_id))
            before = -1 if topic is None else topic.partitions[change.partition].leader
            self.unclean_elections += change.leader != before

    def _secure(self) -> None:
        """Create the cluster's secret and its first admin, if listeners demand passwords."""
        authentication, draft = self._host.authentication, self._draft
        wanted = authentication.first_admin
        if authentication.is_needed or wanted:
            self._propose(cluster_secret(draft, authentication.random_bytes))
        admins = first_credentials(draft, wanted)
        self._propose(admins)
        if admins:
            event = "created the first admin"
            self._outbox.append(Notice("info", event, {"user": admins[0].user}))
        elif wanted and draft.feature_level < SECURITY_LEVEL:
            event = "cannot create the first admin: run `barnabas cluster upgrade`, then restart"
            self._outbox.append(Notice("warning", event, {"user": wanted[0].user}))

    def alter_credentials(
        self, request: AlterUserScramCredentialsRequest
    ) -> Pending[AlterUserScramCredentialsResponse]:
        """Set and delete the SCRAM credentials of users."""
        random_bytes = self._host.authentication.random_bytes
        altered = alter_credentials(self._draft, request, MECHANISMS, random_bytes)
        return self._decided(altered.records, altered.response)

    def begin_alone(self, membership: Membership, now_ms: int) -> None:
        """Register the only broker, before it serves clients."""
        request = membership.registration()
        registration = brokers.register_alone(self._draft, request)
        if registration is None:  # it was part of a cluster once
            registration = brokers.register(
                self._draft, request, self._host.topic_defaults, in_session=False
            )
            self._host.commit(registration.records, now_ms)
            self._host.commit(
                brokers.unfence(self._draft, request.broker_id, self._host.topic_defaults), now_ms
            )
        else:
            self._host.commit(registration.records, now_ms)
        membership.broker_epoch = registration.broker_epoch
        membership.is_active = True
        self._quorum.raft.commit_now()

    def end(self) -> None:
        """Stop: another node is the controller."""
        for timer in self._duties:
            timer.cancel()
        self._duties.clear()

    def register(self, request: BrokerRegistrationRequest) -> Pending[BrokerRegistrationResponse]:
        """Register a broker's process."""
        now_ms = self._timers.now_ms
        self._check_level(request)
        registration = brokers.register(
            self._draft,
            request,
            self._host.topic_defaults,
            in_session=self._heartbeats.in_session(request.broker_id, now_ms),
        )
        answer = BrokerRegistrationResponse(broker_epoch=registration.broker_epoch)
        pending = self._decided(registration.records, answer)
        end_offset = self._quorum.raft.end_offset
        if registration.records:
            self._heartbeats.registered(request.broker_id, now_ms, end_offset)
        return pending

    def _check_level(self, request: BrokerRegistrationRequest) -> None:
        """Refuse a broker that is too old for the cluster; report it once for each process."""
        draft = self._draft  # raises if another node controls the cluster
        try:
            check_registration(draft, request)
        except ApiError as error:
            if self._refused.get(request.broker_id) != request.incarnation_id:
                self._refused[request.broker_id] = request.incarnation_id
                facts = {"broker": request.broker_id, "problem": error.message}
                self._outbox.append(
                    Notice("error", "refused to register a broker that is too old", facts)
                )
            raise

    def heartbeat(self, request: BrokerHeartbeatRequest) -> Pending[BrokerHeartbeatResponse]:
        """Handle a heartbeat: unfence the broker, or let it stop."""
        self._probing.note_heartbeat(request.broker_id)
        for broker, offset in self._quorum.raft.applied_offsets().items():
            self._heartbeats.applied(broker, offset)
        beat = self._heartbeats.heartbeat(
            self._draft,
            request,
            self._host.topic_defaults,
            now_ms=self._timers.now_ms,
            end_offset=self._quorum.raft.end_offset,
        )
        answer = self._decided(beat.records, beat.response)
        if any(isinstance(each, BrokerChanged) and not each.fenced for each in beat.records):
            self.grow()
        return answer

    def alter_partition(self, request: AlterPartitionRequest) -> Pending[AlterPartitionResponse]:
        """Decide on what a leader proposes as its in-sync replicas."""
        altered = alter_partition(self._draft, request, self._host.topic_defaults)
        return self._decided(altered.records, altered.response)

    def elect_leaders(self, request: ElectLeadersRequest) -> Pending[ElectLeadersResponse]:
        """Elect leaders as an operator asks."""
        elected = elections.elect_leaders(self._draft, request, self._host.topic_defaults)
        return self._decided(elected.records, elected.response)

    def reassign(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Pending[AlterPartitionReassignmentsResponse]:
        """Reassign replicas, or cancel a reassignment."""
        moved = reassignment.alter_reassignments(self._draft, request, self._host.topic_defaults)
        return self._decided(moved.records, moved.response)

    def unregister(self, node_id: int) -> Pending[None]:
        """Remove a broker from the cluster."""
        records = brokers.unregister(self._draft, node_id, self._host.topic_defaults)
        self._heartbeats.forget(node_id)
        return self._decided(records, None)

    def change_configs(
        self,
        changes: Sequence[ConfigChanged],
        now_ms: int,
        others: Sequence[MetadataRecord] = (),
    ) -> Pending[None]:
        """Change configs, and the leaders that depend on them, together with other records."""
        after = self._draft.fork()
        for change in changes:
            after.replay(change)
        every_topic = any(change.kind == BROKER for change in changes)
        topics = [change.name for change in changes if change.kind == TOPIC]
        names = after.topics if every_topic else topics
        settled = elections.configs_changed(after, list(names), self._host.defaults_of(after))
        return self._host.commit([*changes, *settled, *others], now_ms)

    def reserve_producer_ids(self, now_ms: int) -> Pending[range]:
        """Reserve a block of producer ids."""
        start = self._draft.next_producer_id
        end = start + PRODUCER_ID_BLOCK
        reserved = self._host.commit([ProducerIdsReserved(next_producer_id=end)], now_ms)
        return reserved.map(lambda _: range(start, end))

    def _decided(self, records: Sequence[MetadataRecord], response: T) -> Pending[T]:
        """Return the response for when the records are committed."""
        return self._host.commit(records, self._timers.wall_ms).map(lambda _: response)

    def _fence_expired(self) -> None:
        for broker in self._heartbeats.due(self._draft, self._timers.now_ms):
            self._outbox.append(
                Notice("warning", "fencing a broker that sends no heartbeats", {"broker": broker})
            )
            self._fence(broker)

    def _fence_gone(self, broker: NodeId) -> None:
        known = self._draft.brokers.get(broker)
        if known is not None and not known.fenced:
            facts = {"broker": broker}
            self._outbox.append(Notice("warning", "fencing a broker whose process is gone", facts))
            self._fence(broker)

    def _fence(self, broker: int) -> None:
        end_offset = self._quorum.raft.end_offset
        self._propose(
            self._heartbeats.expire(self._draft, broker, self._host.topic_defaults, end_offset)
        )

    def prefer_leaders(self) -> None:
        """Give partitions back to the brokers that were chosen to lead them."""
        self._propose(elections.prefer_first_replicas(self._draft, self._host.topic_defaults))

    def grow(self) -> None:
        """Add replicas that topics lack because brokers were down when they were made."""
        self._propose(grow(self._draft, self._host.topic_defaults))

    def remove_expired_tokens(self) -> None:
        """Remove expired delegation tokens, which brokers no longer accept."""
        self._propose(expired_tokens(self._draft, self._timers.wall_ms))

    def _propose(self, records: Sequence[MetadataRecord]) -> None:
        """Propose the controller's own changes; if the disk refuses, the next turn tries again."""
        if not records:
            return
        try:
            self._host.commit(records, self._timers.wall_ms)
        except ApiError as error:
            facts = {"problem": error.message}
            self._outbox.append(Notice("error", "the controller cannot write metadata", facts))

    def _every(self, interval_ms: int, duty: Callable[[], None]) -> None:
        if not interval_ms:
            return
        timers = self._timers

        def turn() -> None:
            if self._quorum.is_controller:
                self._duties[place] = timers.after(interval_ms, turn)
                duty()

        place = len(self._duties)
        self._duties.append(timers.after(interval_ms, turn))

    def _new_cluster_id(self) -> str:
        return "".join(self._rng.choice(ID_ALPHABET) for _ in range(22))
