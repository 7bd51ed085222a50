"""Every copy on this broker in its role, as the image says: whom it follows, who follows it.

Copies that follow are spread over fetchers, a few for each leader. Copies that lead watch their
followers: when somebody falls behind or has caught up, the controller is asked for another ISR.
Proposals of all partitions go out together, one request at a time. What becomes of one is
known once the controller accepts or refuses it, or the image says more; until then the partition
reckons with either outcome, and the request is repeated.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.controller.configs import catch_up_rate
from barnabas.controller.in_sync import GIVES_UP, RESIGNS
from barnabas.effects import Address, Notice
from barnabas.metadata.image import PartitionImage, TopicImage
from barnabas.metadata.records import BrokerChanged, ConfigChanged, MetadataRecord
from barnabas.model.errors import ErrorCode
from barnabas.node.copying import LocalCopy
from barnabas.node.held_copies import HeldCopies, takes_writes
from barnabas.node.partition import Partition
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

if TYPE_CHECKING:
    from barnabas.node.node import Node

NOBODY = -1
RETRY_MS = 100
REFUSED = (
    ErrorCode.INELIGIBLE_REPLICA,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)
"""Answers that say for sure that a proposal was not and will not be accepted."""


class LedCopy:
    """A copy that leads, as long as its log is good and its disk takes appends."""

    __slots__ = ("_partition", "_replicas")

    def __init__(self, partition: Partition, replicas: "Replicas") -> None:
        self._partition = partition
        self._replicas = replicas

    def synced(self) -> None:
        """Nobody needs to know: the high watermark has moved."""

    def damaged(self) -> None:
        """Have another replica lead, which has what is damaged here."""
        if self._partition.in_sync is not None:
            self._partition.in_sync.gives_up = True
            self._replicas.consider(self._partition)

    def append_refused(self) -> None:
        """Have another replica lead where the disk has refused every append for too long."""
        self._replicas.append_refused(self._partition)

    def append_taken(self) -> None:
        """Go on to lead."""
        if self._partition.in_sync is not None:
            self._partition.in_sync.resigns = False

    def retired(self) -> None:
        """Let go."""
        self._replicas.forget(self._partition)


class Replicas:
    """The roles of all copies on one node."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._me = node.node_id
        self._settings = settings = node.settings.replication
        self._lag_limits = LagLimits(settings.replica_lag_max_ms, settings.replica_lag_max_records)
        self.throttle = Throttle(settings.catch_up_bytes_per_second)
        """What copies out of sync may use."""
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._copies: dict[Partition, LocalCopy] = {}
        self._led: dict[Partition, None] = {}
        self._proposals: dict[Partition, None] = {}
        self._declined: dict[Partition, PartitionImage] = {}
        self._ahead: dict[Partition, PartitionImage] = {}
        """What the controller answered of a partition, where the image does not say so yet."""
        data = node.settings.broker.data_dir
        self._held = HeldCopies(node.timers, lambda: takes_writes(node.disk, data))
        self._refused_max_ms = node.settings.cluster.broker_session_timeout_ms // 2
        """How long a leader may refuse appends: shorter than one that is silent may lead."""
        self._asking = False
        self._looking = False

    def apply(self, partition: Partition, placed: PartitionImage) -> None:
        """Have a copy lead, follow another, or wait until another leads."""
        if _epochs(placed) < _epochs(partition.placed):
            return  # the controller's answer was faster than the image, and says more
        now_ms = self._node.timers.now_ms
        self._declined.pop(partition, None)
        if placed.leader == self._me and partition.is_unfit and len(placed.isr) > 1:
            self._decline(partition, placed)
        elif placed.leader == self._me:
            self._unfollow(partition)
            if not partition.leads and placed.leader_epoch and len(placed.replicas) > 1:
                partition.excuse()
            partition.lead(placed, self._me, now_ms)
            self._watch(partition)
        else:
            self._led.pop(partition, None)
            if partition.leads:
                partition.keeper = None
            self._follow(partition, placed)

    def fetched(self, partition: Partition, replica: int, broker_epoch: int, offset: int) -> None:
        """Take note of how far a follower of a partition is."""
        partition.fetched(replica, broker_epoch, offset, self._node.timers.now_ms)
        self.consider(partition)

    def consider(self, partition: Partition) -> None:
        """Propose another ISR for a partition where one is due."""
        in_sync = partition.in_sync
        if in_sync is None:
            return
        wanted = in_sync.proposal(
            partition.high_watermark,
            partition.log.end_offset,
            self._node.timers.now_ms,
            self._lag_limits,
            self._active_epoch,
        )
        if wanted is not None:
            in_sync.propose(wanted)
            self._proposals[partition] = None
            self._propose()

    def append_refused(self, partition: Partition) -> None:
        """Ask for another leader where the disk has refused every append for too long."""
        in_sync = partition.in_sync
        refused_ms = partition.append_failures.count(self._node.timers.now_ms)
        if in_sync is None or refused_ms < self._refused_max_ms:
            return
        if not in_sync.resigns:
            in_sync.resigns = True
            facts = {"partition": str(partition.name), "in_sync": list(partition.isr)}
            event = "asks for another leader: the disk refuses appends"
            self._node.outbox.append(Notice("warning", event, facts))
        self.consider(partition)

    def newest(self, topic: TopicImage) -> Sequence[PartitionImage]:
        """Return a topic's partitions as the image has them, or as the controller answered since.

        The image of a broker with a full disk stays behind: its metadata log is on that disk, too.
        """
        if not self._ahead:
            return topic.partitions
        copies = self._node.by_topic_id.get(topic.topic_id, {})
        ahead = {number: self._ahead.get(copy) for number, copy in copies.items()}
        return [ahead.get(number) or placed for number, placed in enumerate(topic.partitions)]

    def forget(self, partition: Partition) -> None:
        """Let go of a partition that was led here and is gone."""
        self._led.pop(partition, None)
        self._proposals.pop(partition, None)

    def nearest(self, partition: Partition, rack_id: str, offset: int) -> int:
        """Return which in-sync follower stands where a consumer does and has what it wants.

        -1 where there is none, or this broker stands there itself.
        """
        in_sync, image = partition.in_sync, self._node.image
        if in_sync is None or rack_id == self._node.settings.broker.rack:
            return NOBODY
        best, reached = NOBODY, offset - 1
        for member in partition.isr:
            broker, follower = image.brokers.get(member), in_sync.followers.get(member)
            if broker is None or follower is None or not broker.is_active:
                continue
            if broker.rack == rack_id and follower.end_offset > reached:
                best, reached = member, follower.end_offset
        return best

    def look(self) -> None:
        """See whose followers fell behind."""
        now_ms = self._node.timers.now_ms
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
            self.throttle.limit(catch_up_rate(self._node.image, self._me, rate))
        for partition in [each for each in self._copies if each.retired]:
            del self._copies[partition]
        for partition in [each for each in self._ahead if not self._is_ahead(each)]:
            del self._ahead[partition]
        if changes is None or any(isinstance(change, BrokerChanged) for change in changes):
            for partition in list(self._led):
                self.consider(partition)

    def _watch(self, partition: Partition) -> None:
        if partition.in_sync is None:
            self._led.pop(partition, None)
            partition.keeper = None
            return
        self._led[partition] = None
        partition.keeper = LedCopy(partition, self)
        if partition.damaged_at is not None:
            partition.keeper.damaged()
        if not self._looking:
            self._looking = True
            self._look_later()

    def _look_later(self) -> None:
        self._node.timers.after(self._settings.replica_lag_max_ms // 2, self._look_in_turn)

    def _look_in_turn(self) -> None:
        self._look_later()
        self.look()

    def _follow(self, partition: Partition, placed: PartitionImage) -> None:
        known = self._copies.get(partition)
        same = (
            known is not None
            and not partition.leads
            and (placed.leader, placed.leader_epoch)
            == (partition.leader_id, partition.leader_epoch)
        )
        partition.follow(placed)
        if same and known is not None:
            known.placed()
            return
        self._unfollow(partition)
        if placed.leader != NOBODY:
            fetcher = self._fetcher(placed.leader, partition)
            copy = LocalCopy(partition, fetcher, self._me, self._node.outbox)
            self._copies[partition] = copy
            copy.begin()
            if copy.is_held:
                self._held.hold(copy)

    def _decline(self, partition: Partition, placed: PartitionImage) -> None:
        """Not lead, for others have what the disk lost here, or room; have one of them elected."""
        self._unfollow(partition)
        self._led.pop(partition, None)
        partition.follow(placed)
        self._declined[partition] = placed
        self._proposals[partition] = None
        facts = {"partition": str(partition.name), "end": partition.log.end_offset}
        event = "does not lead: records are damaged, or missing that had been synced"
        if not _may_lack_records(partition):
            event = "does not lead: the disk refuses appends"
        self._node.outbox.append(Notice("error", event, facts))
        self._propose()

    def _unfollow(self, partition: Partition) -> None:
        copy = self._copies.pop(partition, None)
        if copy is not None:
            copy.end()

    def _fetcher(self, leader: int, partition: Partition) -> Fetcher:
        """Return the one of a leader's fetchers that a partition belongs to, for good."""
        place = int.from_bytes(partition.topic_id[-4:]) + partition.name.partition
        number = place % max(1, self._settings.fetchers)
        fetcher = self._fetchers.get((leader, number))
        if fetcher is None:
            fetcher = self._fetchers[leader, number] = Fetcher(
                self._me,
                f"replica-{number}",
                self._settings,
                self._node.timers,
                self._node.outbox,
                self.throttle,
                lambda: self._address_of(leader),
                self._my_epoch,
            )
        return fetcher

    def _address_of(self, broker: int) -> Address | None:
        found = self._node.image.brokers.get(broker)
        return None if found is None else Address(found.peer_host, found.peer_port)

    def _my_epoch(self) -> int:
        found = self._node.image.brokers.get(self._me)
        return -1 if found is None else found.broker_epoch

    def _active_epoch(self, broker: int) -> int | None:
        found = self._node.image.brokers.get(broker)
        return found.broker_epoch if found is not None and found.is_active else None

    def _propose(self) -> None:
        """Ask the controller for what was proposed, unless it is being asked."""
        if self._asking:
            return
        self._proposals = {each: None for each in self._proposals if self._is_proposing(each)}
        controller = self._node.controller_id
        if not self._proposals:
            return
        self._asking = True
        if controller is None:
            self._ask_later()
            return
        asked = list(self._proposals)
        answer = self._node.peers.ask(controller, self._request(asked))
        answer.when_done(
            lambda response: self._answered(asked, response), lambda _: self._ask_later()
        )

    def _ask_later(self) -> None:
        self._node.timers.after(RETRY_MS, self._ask_again)

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
            state = GIVES_UP if in_sync.gives_up else RESIGNS
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
        """Take in what became of one proposal; where that is not known, it stands.

        Who is out of sync is not known for sure before the image says so: it may have to say first
        that more must be in sync, and until then a leader could take itself for enough.
        """
        in_sync = partition.in_sync
        if told.error_code == ErrorCode.NEW_LEADER_ELECTED:
            self._step_down(partition, told)
            return
        if in_sync is None or told.error_code in REFUSED:
            if in_sync is not None:
                in_sync.proposed = None
            return
        nobody_left = set(partition.isr) <= set(told.isr)
        if told.error_code == 0 and told.leader_epoch == partition.leader_epoch and nobody_left:
            partition.agree(told.isr, told.partition_epoch, self._node.timers.now_ms)

    def _step_down(self, partition: Partition, told: AlterPartitionResponsePartitionData) -> None:
        """Follow who leads by the controller's answer, without waiting for the image to say so."""
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
        self._node.local.give_role(partition, placed)
        self._ahead[partition] = placed

    def _is_ahead(self, partition: Partition) -> bool:
        """Tell whether the image still does not say what the controller answered."""
        topic = self._node.image.topic_by_id(partition.topic_id)
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
        leader_recovery_state=GIVES_UP if _may_lack_records(partition) else RESIGNS,
        partition_epoch=placed.partition_epoch,
    )


def _may_lack_records(partition: Partition) -> bool:
    """Tell whether a copy that does not lead should be trusted with nothing that it had."""
    return partition.lost_records or partition.damaged_at is not None


def _epochs(placed: PartitionImage) -> tuple[int, int]:
    return placed.leader_epoch, placed.partition_epoch
