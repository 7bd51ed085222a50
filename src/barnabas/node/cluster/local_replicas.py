"""Gives every replica on this broker its role by the metadata: leader, or follower of a leader.

Followers are spread over fetchers, a few for each leader. Leaders watch their followers: when one
falls behind or has caught up, the leader asks the controller for another ISR.
Proposals of all partitions are sent together, one request at a time. The outcome of a proposal is
known once the controller accepts or refuses it, or the image shows it; until then the partition
allows for either outcome, and the request is repeated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from barnabas.controller.configs import catch_up_rate
from barnabas.controller.isr_decisions import DISK_REFUSES, LOG_DAMAGED
from barnabas.effects import Address, Effect, Notice
from barnabas.metadata.image import PartitionImage, TopicImage
from barnabas.metadata.metadata_records import BrokerChanged, ConfigChanged, MetadataRecord
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.ports import Disk
from barnabas.model.settings import Settings
from barnabas.model.timers import Timers
from barnabas.node.cluster.broker_ports import BrokerRequests, MetadataView
from barnabas.node.partitions.follower_replica import FollowerReplica
from barnabas.node.partitions.held_replicas import HeldReplicas, accepts_writes
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from barnabas.replication.following import Fetcher
from barnabas.replication.in_sync import LagLimits
from barnabas.replication.throttle import Throttle

NO_REPLICA = -1
RETRY_MS = 100
REFUSED = (
    ErrorCode.INELIGIBLE_REPLICA,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)
"""Answers that say for sure that a proposal was not and will not be accepted."""


class LeaderReplica:
    """A replica that leads while its log is undamaged and its disk takes appends."""

    __slots__ = ("_partition", "_replicas")

    def __init__(self, partition: Partition, replicas: "Replicas") -> None:
        self._partition = partition
        self._replicas = replicas

    def synced(self) -> None:
        """Do nothing: the high watermark has moved already."""

    def damaged(self) -> None:
        """Ask for another leader, which has the records that are damaged here."""
        if self._partition.in_sync is not None:
            self._partition.in_sync.gives_up = True
            self._replicas.consider(self._partition)

    def append_refused(self) -> None:
        """Ask for another leader if the disk has refused every append for too long."""
        self._replicas.append_refused(self._partition)

    def append_accepted(self) -> None:
        """Continue to lead."""
        if self._partition.in_sync is not None:
            self._partition.in_sync.resigns = False

    def retired(self) -> None:
        """Stop watching the partition."""
        self._replicas.forget(self._partition)


class ReplicaHost(MetadataView, Protocol):
    """What the roles of replicas need from the broker."""

    @property
    def by_topic_id(self) -> Mapping[TopicId, Mapping[int, Partition]]:
        """The open replicas of each topic."""

    def give_role(self, partition: Partition, placed: PartitionImage) -> None:
        """Have a replica lead or follow; this calls `Replicas.apply`."""


class Replicas:
    """The roles of all replicas on one broker."""

    def __init__(
        self,
        host: ReplicaHost,
        settings: Settings,
        disk: Disk,
        peers: BrokerRequests,
        timers: Timers,
        outbox: list[Effect],
    ) -> None:
        self._host = host
        self._peers = peers
        self._timers = timers
        self._outbox = outbox
        self._me = settings.broker.node_id
        self._rack = settings.broker.rack
        self._settings = limits = settings.replication
        self._lag_limits = LagLimits(limits.replica_lag_max_ms, limits.replica_lag_max_records)
        self.throttle = Throttle(limits.catch_up_bytes_per_second)
        """The bandwidth of replicas that are out of sync."""
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._followers: dict[Partition, FollowerReplica] = {}
        self._led: dict[Partition, None] = {}
        self._proposals: dict[Partition, None] = {}
        self._declined: dict[Partition, PartitionImage] = {}
        self._ahead: dict[Partition, PartitionImage] = {}
        """The controller's answer for a partition, if the image does not have it yet."""
        data = settings.broker.data_dir
        self._held = HeldReplicas(timers, lambda: accepts_writes(disk, data))
        self._refused_max_ms = settings.cluster.broker_session_timeout_ms // 2
        """How long a leader may refuse appends: shorter than one that is silent may lead."""
        self._asking = False
        self._looking = False
        self.isr_shrinks = self.isr_expands = 0
        """How often a replica left or joined the ISR of a partition that is led here."""
        self.failed_isr_updates = 0
        """Proposals that the controller refused."""

    def apply(self, partition: Partition, placed: PartitionImage) -> None:
        """Have a replica lead, follow a leader, or wait for one."""
        if _epochs(placed) < _epochs(partition.placed):
            return  # the controller's answer came before the image, and is newer
        now_ms = self._timers.now_ms
        self._declined.pop(partition, None)
        if placed.leader == self._me and partition.is_unfit and len(placed.isr) > 1:
            self._decline(partition, placed)
        elif placed.leader == self._me:
            self._unfollow(partition)
            if not partition.leads and placed.leader_epoch and len(placed.replicas) > 1:
                partition.leader.excuse_missing_batches()
            self._count_change(partition, placed.isr)
            partition.lead(placed, self._me, now_ms)
            self._watch(partition)
        else:
            self._led.pop(partition, None)
            if partition.leads:
                partition.health.listener = None
            self._follow(partition, placed)

    def fetched(self, partition: Partition, replica: int, broker_epoch: int, offset: int) -> None:
        """Record how far a follower of a partition is."""
        partition.leader.fetched(replica, broker_epoch, offset, self._timers.now_ms)
        self.consider(partition)

    def consider(self, partition: Partition) -> None:
        """Propose another ISR for a partition if one is due."""
        in_sync = partition.in_sync
        if in_sync is None:
            return
        wanted = in_sync.proposal(
            partition.high_watermark,
            partition.log.end_offset,
            self._timers.now_ms,
            self._lag_limits,
            self._active_epoch,
        )
        if wanted is not None:
            in_sync.propose(wanted)
            self._proposals[partition] = None
            self._propose()

    def append_refused(self, partition: Partition) -> None:
        """Ask for another leader if the disk has refused a partition's appends for too long."""
        in_sync = partition.in_sync
        refused_ms = partition.health.append_failures.count(self._timers.now_ms)
        if in_sync is None or refused_ms < self._refused_max_ms:
            return
        if not in_sync.resigns:
            in_sync.resigns = True
            facts = {"partition": str(partition.name), "in_sync": list(partition.isr)}
            event = "asking for another leader: the disk refuses appends"
            self._outbox.append(Notice("warning", event, facts))
        self.consider(partition)

    def newest(self, topic: TopicImage) -> Sequence[PartitionImage]:
        """Return a topic's partitions as the image has them, or as the controller answered since.

        The image of a broker with a full disk stays behind: its metadata log is on that disk, too.
        """
        if not self._ahead:
            return topic.partitions
        copies = self._host.by_topic_id.get(topic.topic_id, {})
        ahead = {number: self._ahead.get(copy) for number, copy in copies.items()}
        return [ahead.get(number) or placed for number, placed in enumerate(topic.partitions)]

    def forget(self, partition: Partition) -> None:
        """Stop watching a partition that was led here and is gone."""
        self._led.pop(partition, None)
        self._proposals.pop(partition, None)

    def nearest(self, partition: Partition, rack_id: str, offset: int) -> int:
        """Return the in-sync follower in a consumer's rack that has the offset it wants.

        -1 if there is none, or this broker is in that rack itself.
        """
        in_sync, image = partition.in_sync, self._host.image
        if in_sync is None or rack_id == self._rack:
            return NO_REPLICA
        best, reached = NO_REPLICA, offset - 1
        for member in partition.isr:
            broker, follower = image.brokers.get(member), in_sync.followers.get(member)
            if broker is None or follower is None or not broker.is_active:
                continue
            if broker.rack == rack_id and follower.end_offset > reached:
                best, reached = member, follower.end_offset
        return best

    def look(self) -> None:
        """Propose another ISR for partitions whose followers fell behind."""
        now_ms = self._timers.now_ms
        for partition in [each for each in self._led if each.retired or not each.leads]:
            del self._led[partition]
        for partition in list(self._led):
            self.consider(partition)
            if partition.in_sync is not None:
                partition.in_sync.look(partition.log.end_offset, now_ms)

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Act on brokers that came back, which may be let in now, and on their configs.

        None says that everything may be different.
        """
        if changes is None or any(isinstance(change, ConfigChanged) for change in changes):
            rate = self._settings.catch_up_bytes_per_second
            self.throttle.limit(catch_up_rate(self._host.image, self._me, rate))
        for partition in [each for each in self._followers if each.retired]:
            del self._followers[partition]
        for partition in [each for each in self._ahead if not self._is_ahead(each)]:
            del self._ahead[partition]
        if changes is None or any(isinstance(change, BrokerChanged) for change in changes):
            for partition in list(self._led):
                self.consider(partition)

    def _watch(self, partition: Partition) -> None:
        if partition.in_sync is None:
            self._led.pop(partition, None)
            partition.health.listener = None
            return
        self._led[partition] = None
        partition.health.listener = LeaderReplica(partition, self)
        if partition.health.damaged_at is not None:
            partition.health.listener.damaged()
        if not self._looking:
            self._looking = True
            self._look_later()

    def _look_later(self) -> None:
        self._timers.after(self._settings.replica_lag_max_ms // 2, self._look_in_turn)

    def _look_in_turn(self) -> None:
        self._look_later()
        self.look()

    def _follow(self, partition: Partition, placed: PartitionImage) -> None:
        known = self._followers.get(partition)
        same = (
            known is not None
            and not partition.leads
            and (placed.leader, placed.leader_epoch)
            == (partition.leader_id, partition.leader_epoch)
        )
        partition.follow(placed)
        if same and known is not None:
            known.isr_changed()
            return
        self._unfollow(partition)
        if placed.leader != NO_REPLICA:
            fetcher = self._fetcher(placed.leader, partition)
            copy = FollowerReplica(partition, fetcher, self._me, self._outbox)
            self._followers[partition] = copy
            copy.begin()
            if copy.is_held:
                self._held.hold(copy)

    def _decline(self, partition: Partition, placed: PartitionImage) -> None:
        """Refuse to lead, so that a replica is elected that has the lost records, or disk space."""
        self._unfollow(partition)
        self._led.pop(partition, None)
        partition.follow(placed)
        self._declined[partition] = placed
        self._proposals[partition] = None
        facts = {"partition": str(partition.name), "end": partition.log.end_offset}
        event = "refusing to lead: synced records are damaged or missing"
        if not _may_lack_records(partition):
            event = "refusing to lead: the disk refuses appends"
        self._outbox.append(Notice("error", event, facts))
        self._propose()

    def _unfollow(self, partition: Partition) -> None:
        copy = self._followers.pop(partition, None)
        if copy is not None:
            copy.end()

    def _fetcher(self, leader: int, partition: Partition) -> Fetcher:
        """Return the fetcher of a leader that a partition always belongs to."""
        place = int.from_bytes(partition.topic_id[-4:]) + partition.name.partition
        number = place % max(1, self._settings.fetchers)
        fetcher = self._fetchers.get((leader, number))
        if fetcher is None:
            fetcher = self._fetchers[leader, number] = Fetcher(
                self._me,
                f"replica-{number}",
                self._settings,
                self._timers,
                self._outbox,
                self.throttle,
                lambda: self._address_of(leader),
                self._my_epoch,
            )
        return fetcher

    def _address_of(self, broker: int) -> Address | None:
        found = self._host.image.brokers.get(broker)
        return None if found is None else Address(found.peer_host, found.peer_port)

    def _my_epoch(self) -> int:
        found = self._host.image.brokers.get(self._me)
        return -1 if found is None else found.broker_epoch

    def _active_epoch(self, broker: int) -> int | None:
        found = self._host.image.brokers.get(broker)
        return found.broker_epoch if found is not None and found.is_active else None

    def _propose(self) -> None:
        """Ask the controller for what was proposed, unless it is being asked."""
        if self._asking:
            return
        self._proposals = {each: None for each in self._proposals if self._is_proposing(each)}
        controller = self._host.controller_id
        if not self._proposals:
            return
        self._asking = True
        if controller is None:
            self._ask_later()
            return
        asked = list(self._proposals)
        answer = self._peers.ask(controller, self._request(asked))
        answer.when_done(
            lambda response: self._answered(asked, response), lambda _: self._ask_later()
        )

    def _ask_later(self) -> None:
        self._timers.after(RETRY_MS, self._ask_again)

    def _ask_again(self) -> None:
        self._asking = False
        self._propose()

    def _request(self, partitions: list[Partition]) -> AlterPartitionRequest:
        topics: dict[bytes, AlterPartitionRequestTopicData] = {}
        for partition in partitions:
            topic_id = partition.topic_id
            topic = topics.setdefault(topic_id, AlterPartitionRequestTopicData(topic_id=topic_id))
            topic.partitions.append(self._proposal(partition))
        return AlterPartitionRequest(
            broker_id=self._me, broker_epoch=self._my_epoch(), topics=list(topics.values())
        )

    def _proposal(self, partition: Partition) -> AlterPartitionRequestPartitionData:
        in_sync, declined = partition.in_sync, self._declined.get(partition)
        if declined is not None:
            return _resignation(partition, declined, self._me)
        assert in_sync is not None
        assert in_sync.proposed is not None
        members = [
            BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in in_sync.seen
        ]
        for member in members:
            if member.broker_id == self._me:
                member.broker_epoch = self._my_epoch()
        state = 0
        if self._me not in in_sync.proposed:
            state = LOG_DAMAGED if in_sync.gives_up else DISK_REFUSES
        return AlterPartitionRequestPartitionData(
            partition_index=partition.name.partition,
            leader_epoch=partition.leader_epoch,
            leader_recovery_state=state,
            new_isr_with_epochs=members,
            partition_epoch=in_sync.partition_epoch,
        )

    def _answered(self, asked: list[Partition], response: Any) -> None:  # noqa: ANN401
        assert isinstance(response, AlterPartitionResponse)
        by_key = {(bytes(each.topic_id), each.name.partition): each for each in asked}
        for topic in response.topics:
            for told in topic.partitions:
                partition = by_key.get((topic.topic_id, told.partition_index))
                if partition is not None:
                    self._settle(partition, told)
        self._proposals = {each: None for each in self._proposals if self._is_proposing(each)}
        if self._proposals:
            self._ask_later()
        else:
            self._asking = False

    def _settle(self, partition: Partition, told: AlterPartitionResponsePartitionData) -> None:
        """Apply the answer to one proposal; if the outcome is unknown, the proposal stays.

        A removal from the ISR counts only once the image has it: an earlier record may raise
        min.insync.replicas, and until then a leader could take itself for enough.
        """
        in_sync = partition.in_sync
        if told.error_code == ErrorCode.NEW_LEADER_ELECTED:
            self._step_down(partition, told)
            return
        if told.error_code:
            self.failed_isr_updates += 1
        if in_sync is None or told.error_code in REFUSED:
            if in_sync is not None:
                in_sync.proposed = None
            return
        none_removed = set(partition.isr) <= set(told.isr)
        if told.error_code == 0 and told.leader_epoch == partition.leader_epoch and none_removed:
            self._count_change(partition, told.isr)
            partition.apply_isr_change(told.isr, told.partition_epoch, self._timers.now_ms)

    def _count_change(self, partition: Partition, isr: Sequence[int]) -> None:
        """Count a change of the ISR of a partition that this broker leads already."""
        if not partition.leads:
            return
        before, after = set(partition.isr), set(isr)
        self.isr_shrinks += bool(before - after)
        self.isr_expands += bool(after - before)

    def _step_down(self, partition: Partition, told: AlterPartitionResponsePartitionData) -> None:
        """Follow the leader in the controller's answer, before the image has it."""
        placed = replace(
            partition.placed,
            leader=told.leader_id,
            leader_epoch=told.leader_epoch,
            isr=list(told.isr),
            partition_epoch=told.partition_epoch,
            unclean=bool(told.leader_recovery_state),
        )
        if partition.retired or _epochs(placed) <= _epochs(partition.placed):
            return
        self._host.give_role(partition, placed)
        self._ahead[partition] = placed

    def _is_ahead(self, partition: Partition) -> bool:
        """Tell whether the image still does not say what the controller answered."""
        topic = self._host.image.topic_by_id(partition.topic_id)
        if topic is None or partition.retired:
            return False
        placed = topic.partitions[partition.name.partition]
        return _epochs(placed) < _epochs(self._ahead[partition])

    def _is_proposing(self, partition: Partition) -> bool:
        in_sync = partition.in_sync
        proposes = in_sync is not None and in_sync.proposed is not None
        return not partition.retired and (proposes or partition in self._declined)


def _resignation(
    partition: Partition, placed: PartitionImage, me: int
) -> AlterPartitionRequestPartitionData:
    """Return the proposal of a leader that has not begun to lead, and will not."""
    others = [BrokerState(broker_id=member) for member in placed.isr if member != me]
    return AlterPartitionRequestPartitionData(
        partition_index=partition.name.partition,
        leader_epoch=placed.leader_epoch,
        new_isr_with_epochs=others,
        leader_recovery_state=LOG_DAMAGED if _may_lack_records(partition) else DISK_REFUSES,
        partition_epoch=placed.partition_epoch,
    )


def _may_lack_records(partition: Partition) -> bool:
    """Tell whether a replica may have lost records that it had."""
    return partition.health.may_lack_records


def _epochs(placed: PartitionImage) -> tuple[int, int]:
    return placed.leader_epoch, placed.partition_epoch
