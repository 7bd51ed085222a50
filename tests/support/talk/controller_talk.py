"""A controller that commits its decisions at once: requests in, image and responses out."""

from collections.abc import Mapping, Sequence
from random import Random

from barnabas.controller import brokers, elections, growth, isr_decisions, placement, reassignment
from barnabas.controller import topic_decisions as topics
from barnabas.controller.heartbeats import Heartbeats
from barnabas.metadata.image import TOPIC, BrokerImage, Image, PartitionImage
from barnabas.metadata.metadata_records import (
    ClusterFormed,
    ConfigChanged,
    MetadataRecord,
    ReplicationFactorChanged,
    TopicCreated,
    decode,
    encode,
)
from barnabas.model.ids import NodeId
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
)
from barnabas.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest, Listener
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    PartitionResult,
    TopicPartitions,
)

SESSION_MS = 9_000
TOPIC_NAME = "orders"


class ControllerTalk:
    """The active controller of a cluster, with one default topic."""

    def __init__(self, **defaults: str) -> None:
        self.image = Image()
        self.defaults = {name.replace("_", "."): value for name, value in defaults.items()}
        self.heartbeats = Heartbeats(SESSION_MS)
        self.now_ms = 0
        self.end_offset = 0
        self._incarnations = Random(7)
        self.commit([ClusterFormed(cluster_id="cluster")])

    def commit(self, records: Sequence[MetadataRecord]) -> None:
        """Apply records in their stored form, as a batch of the metadata log."""
        for record in records:
            self.image.replay(decode(*encode(record)))
        self.end_offset += len(records)

    # Brokers

    def registration(
        self,
        node_id: int,
        *,
        incarnation: bytes | None = None,
        rack: str | None = None,
        previous: int = -1,
        directory: bytes | None = None,
    ) -> BrokerRegistrationRequest:
        """Return the registration request of a broker."""
        return BrokerRegistrationRequest(
            broker_id=node_id,
            cluster_id="cluster",
            incarnation_id=incarnation or self._incarnations.randbytes(16),
            listeners=[
                Listener(name=brokers.CLIENT_LISTENER, host="client", port=9000 + node_id),
                Listener(name=brokers.PEER_LISTENER, host="peer", port=9500 + node_id),
            ],
            rack=rack,
            log_dirs=[directory or bytes([node_id]) * 16],
            previous_broker_epoch=previous,
        )

    def register(self, request: BrokerRegistrationRequest) -> int:
        """Register; return the broker epoch."""
        known = self.heartbeats.in_session(request.broker_id, self.now_ms)
        epoch, records = brokers.register(self.image, request, self.defaults, in_session=known)
        self.commit(records)
        self.heartbeats.registered(request.broker_id, self.now_ms, self.end_offset)
        return epoch

    def start(self, node_id: int, rack: str | None = None) -> None:
        """Register a broker and unfence it."""
        self.register(self.registration(node_id, rack=rack))
        assert not self.heartbeat(node_id).is_fenced

    def restart(self, node_id: int, *, clean: bool = False, directory: bytes | None = None) -> None:
        """Register a new process of a broker."""
        known = self.broker(node_id)
        request = self.registration(
            node_id,
            previous=known.broker_epoch if clean else -1,
            directory=directory or bytes.fromhex(known.directory),
        )
        self.register(request)

    def heartbeat(
        self,
        node_id: int,
        *,
        applied: int | None = None,
        stop: bool = False,
        want_fence: bool = False,
        epoch: int | None = None,
    ) -> BrokerHeartbeatResponse:
        """Send a heartbeat, by default of a broker that has applied all metadata."""
        request = BrokerHeartbeatRequest(
            broker_id=node_id,
            broker_epoch=self.broker(node_id).broker_epoch if epoch is None else epoch,
            current_metadata_offset=self.end_offset if applied is None else applied,
            want_shut_down=stop,
            want_fence=want_fence,
        )
        records, response = self.heartbeats.heartbeat(
            self.image, request, self.defaults, now_ms=self.now_ms, end_offset=self.end_offset
        )
        self.commit(records)
        return response

    def fence(self, node_id: int) -> None:
        """Fence a broker."""
        self.commit(self.heartbeats.expire(self.image, node_id, self.defaults, self.end_offset))

    def unregister(self, node_id: int) -> None:
        """Unregister a broker."""
        self.commit(brokers.unregister(self.image, node_id, self.defaults))
        self.heartbeats.forget(node_id)

    def broker(self, node_id: int) -> BrokerImage:
        """Return a broker in the image."""
        return self.image.brokers[node_id]

    # Topics

    def create(self, *replicas: Sequence[int], name: str = TOPIC_NAME, **config: str) -> None:
        """Create a topic with given replicas; `_` in names of configs stands for a dot."""
        record = TopicCreated(
            name=name,
            topic_id=(len(self.image.topics) + 1).to_bytes(16, "big").hex(),
            replicas=[list(partition) for partition in replicas],
            config={key.replace("_", "."): value for key, value in config.items()},
        )
        registered = [NodeId(node_id) for node_id in sorted(self.image.brokers)]
        topics.check_placement(dict(enumerate(replicas)), registered)
        left_out = placement.leave_out_inactive(self.image, record.topic_id, record.replicas)
        self.commit([record, *left_out])

    def create_with_missing_replicas(self, *replicas: Sequence[int], wanted: int) -> None:
        """Create a topic that gets its replication factor once the brokers are back."""
        self.create(*replicas)
        topic_id = self.image.topics[TOPIC_NAME].topic_id.hex()
        self.commit([ReplicationFactorChanged(topic_id=topic_id, replication_factor=wanted)])

    def configure(self, name: str = TOPIC_NAME, **config: str) -> None:
        """Set configs of a topic, with the consequences in the same batch."""
        changes: Mapping[str, str | None] = {k.replace("_", "."): v for k, v in config.items()}
        changed = ConfigChanged(kind=TOPIC, name=name, changes=dict(changes))
        ahead = self.image.fork()
        ahead.replay(changed)
        self.commit([changed, *elections.configs_changed(ahead, [name], self.defaults)])

    def grow(self, at_a_time: int = growth.PARTITIONS_AT_A_TIME) -> int:
        """Add missing replicas, as the controller does by itself; return the number of records."""
        records = growth.grow(self.image, self.defaults, at_a_time)
        self.commit(records)
        return len(records)

    def partition(self, number: int = 0, name: str = TOPIC_NAME) -> PartitionImage:
        """Return a partition in the image."""
        return self.image.topics[name].partitions[number]

    def alter(
        self,
        isr: Sequence[int],
        *,
        name: str = TOPIC_NAME,
        number: int = 0,
        seen: PartitionImage | None = None,
        sender: int | None = None,
        sender_epoch: int | None = None,
        member_epochs: Mapping[int, int] | None = None,
        recovery_state: int = 0,
    ) -> AlterPartitionResponsePartitionData:
        """Propose an ISR, by default as its leader with the latest epochs."""
        seen = seen or self.partition(number, name)
        leader = seen.leader if sender is None else sender
        epochs = {b.node_id: b.broker_epoch for b in self.image.brokers.values()}
        shown = {**epochs, **(member_epochs or {})}
        proposal = AlterPartitionRequestPartitionData(
            partition_index=number,
            leader_epoch=seen.leader_epoch,
            partition_epoch=seen.partition_epoch,
            new_isr_with_epochs=[
                BrokerState(broker_id=n, broker_epoch=shown.get(n, -1)) for n in isr
            ],
            leader_recovery_state=recovery_state,
        )
        topic = AlterPartitionRequestTopicData(
            topic_id=self.image.topics[name].topic_id, partitions=[proposal]
        )
        request = AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=epochs.get(leader, -1) if sender_epoch is None else sender_epoch,
            topics=[topic],
        )
        records, response = isr_decisions.alter_partition(self.image, request, self.defaults)
        self.commit(records)
        return response.topics[0].partitions[0]

    def reassign(
        self,
        replicas: Sequence[int] | None,
        number: int = 0,
        *,
        name: str = TOPIC_NAME,
        may_change_count: bool = True,
    ) -> ReassignablePartitionResponse:
        """Reassign a partition, or cancel the reassignment."""
        target = None if replicas is None else list(replicas)
        move = ReassignablePartition(partition_index=number, replicas=target)
        request = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=may_change_count,
            topics=[ReassignableTopic(name=name, partitions=[move])],
        )
        records, response = reassignment.alter_reassignments(self.image, request, self.defaults)
        self.commit(records)
        return response.responses[0].partitions[0]

    def elect(self, election_type: int, *numbers: int) -> dict[int, PartitionResult]:
        """Request leader elections in some or all partitions of the topic."""
        asked = [TopicPartitions(topic=TOPIC_NAME, partitions=list(numbers))] if numbers else None
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=asked)
        records, response = elections.elect_leaders(self.image, request, self.defaults)
        self.commit(records)
        results = response.replica_election_results
        return {each.partition_id: each for topic in results for each in topic.partition_result}
