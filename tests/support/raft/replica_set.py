"""Three replicas of one partition and a simple controller, driven step by step or at random.

Everything that replicates is real: partitions, fetchers, the handler of Fetch, logs on disks that
lose unsynced data. The test simulates the network, which keeps the order within a lane and loses
connections, the disks' syncs, and the controller, which fences, elects and changes ISRs.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

from barnabas.effects import Address, Ask, Flush, MakeDurable, Notice
from barnabas.handlers.context import RequestContext
from barnabas.handlers.produce_fetch import fetch
from barnabas.metadata.image import BrokerImage, Image, PartitionImage
from barnabas.metadata.topic_config import resolve
from barnabas.model.callers import ITSELF
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk, FileSlice
from barnabas.model.settings import BrokerSettings, ReplicationSettings, Settings
from barnabas.model.timers import Timers
from barnabas.node.cluster.local_replicas import Replicas
from barnabas.node.fetch_sessions import FetchSessions
from barnabas.node.node import Node
from barnabas.node.partitions.group_commit import GroupCommit
from barnabas.node.partitions.partition import Partition, log_settings
from barnabas.protocol import fetch as codec
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.storage.flush import carry_out
from barnabas.storage.recovery import open_log

NAME = TopicPartition("orders", 0)
TOPIC_ID = TopicId(bytes(15) + b"\7")
FOLDER = "data/orders/0"
LAG_MAX_MS = 1_000


@dataclass(eq=False)
class PendingRequest:
    """A pending request, and its sender."""

    sender: int
    receiver: int
    ask: Ask
    answer: Pending[list[Chunk]] | list[Chunk] | None = None
    arrived: bool = False
    sender_life: int = 0
    receiver_life: int = 0


class SimulatedBroker:
    """The part of the node that a broker's replication uses."""

    traffic = None

    def __init__(self, replica_set: "ReplicaSet", node_id: int) -> None:
        self.set = replica_set
        self.node_id = NodeId(node_id)
        self.authorizer = None
        self.disk = MemoryDisk()
        self.authorizer = None
        self.life = 0
        self.alive = False
        self.high_watermark_seen = 0
        self.said: list[Notice] = []
        self.held: deque[Flush | MakeDurable] = deque()
        self.placements: deque[PartitionImage] = deque()

    def start(self) -> None:
        """Open the log as a new process would, and wait for metadata."""
        self.life += 1
        self.alive = True
        self.outbox: list[Any] = []
        self.timers = Timers()
        self.timers.now_ms = self.set.now_ms
        self.settings = self.set.settings_of(self.node_id)
        self.sessions = FetchSessions(10, Random(self.life))
        self.held.clear()
        self.placements.clear()
        self.high_watermark_seen = 0
        config = resolve(self.set.config, {})
        log = open_log(self.disk, FOLDER, log_settings(config), root="data").log
        commits = GroupCommit(self.timers, 0, 1 << 20)
        self.partition = Partition(NAME, TOPIC_ID, log, config, self.outbox, commits)
        self.replicas = Replicas(self, self.settings, self.disk, self, self.timers, self.outbox)

    @property
    def image(self) -> Image:
        """All brokers."""
        return self.set.image

    @property
    def controller_id(self) -> NodeId:
        """Return any broker: the controller is simulated."""
        return NodeId(0)

    def ask(self, node_id: NodeId, request: Message, **_: object) -> Pending[Any]:
        """Propose another ISR; the outcome arrives later, or never."""
        del node_id
        assert isinstance(request, AlterPartitionRequest)
        answer: Pending[Any] = Pending()
        self.set.proposals.append((self, self.life, request, answer))
        return answer

    @property
    def by_topic_id(self) -> dict[TopicId, dict[int, Partition]]:
        """The only topic."""
        return {TOPIC_ID: {0: self.partition}}

    def give_role(self, partition: Partition, placed: PartitionImage) -> None:
        """Apply a response of the controller."""
        self.replicas.apply(partition, placed)

    def find(self, key: str | bytes, number: int) -> Partition:
        """Return the partition if this broker leads it."""
        found = self.replica(key, number)
        if not found.leads:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found

    def replica(self, key: str | bytes, number: int) -> Partition:
        """Return the partition."""
        assert (key, number) == (TOPIC_ID, 0)
        return self.partition

    def settle(self) -> None:
        """Carry out effects; requests and syncs are only queued."""
        while self.alive and self.outbox:
            effect = self.outbox.pop(0)
            if isinstance(effect, Ask):
                self.set.send(self, effect)
            elif isinstance(effect, Flush | MakeDurable):
                self.held.append(effect)
            elif isinstance(effect, Notice):
                self.said.append(effect)

    def do(self, action: Callable[[], object]) -> None:
        """Run one event here."""
        self.timers.now_ms = self.timers.wall_ms = self.set.now_ms
        action()
        self.settle()

    def finish_sync(self) -> None:
        """Complete the oldest sync."""
        sync = self.held.popleft()
        if isinstance(sync, Flush):
            carry_out(self.disk, sync.task)
        else:
            sync.sync.carry_out(self.disk)
        self.do(sync.done)

    def apply_next_decision(self) -> None:
        """Apply the next decision of the controller."""
        placed = self.placements.popleft()
        self.do(lambda: self.replicas.apply(self.partition, placed))


class ReplicaSet:
    """Brokers 1 to 3, the network between them, and the controller."""

    def __init__(self, config: dict[str, str] | None = None, fetch_wait_ms: int = 500) -> None:
        self.config = {"min.insync.replicas": "2", **(config or {})}
        self._fetch_wait_ms = fetch_wait_ms
        self.now_ms = 1_000_000
        self.image = Image()
        self.flying: list[PendingRequest] = []
        self.proposals: list[tuple[SimulatedBroker, int, AlterPartitionRequest, Pending[Any]]] = []
        self.refusals = 0
        self.placed = PartitionImage([1, 2, 3], -1, 0, [1, 2, 3])
        self.stands = {number: SimulatedBroker(self, number) for number in (1, 2, 3)}
        self._broker_epoch = 0
        for number in self.stands:
            self.start(number)
        self.elect()

    def settings_of(self, node_id: int) -> Settings:
        """Return the metadata that a broker gets."""
        return Settings(
            broker=BrokerSettings(node_id=NodeId(node_id), data_dir="data", rack=f"r{node_id}"),
            replication=ReplicationSettings(
                replica_lag_max_ms=LAG_MAX_MS, fetch_wait_ms=self._fetch_wait_ms
            ),
        )

    @property
    def leader(self) -> SimulatedBroker | None:
        """The leader that the controller elected, if it runs and knows that."""
        stand = self.stands.get(self.placed.leader)
        return stand if stand is not None and stand.alive and stand.partition.leads else None

    # The controller.

    def start(self, number: int) -> None:
        """Start a broker's process; it registers."""
        stand = self.stands[number]
        stand.start()
        self._broker_epoch += 1
        self.image.brokers[number] = BrokerImage(
            number, self._broker_epoch, "", "h", 1, "h", number, f"r{number}", fenced=False
        )
        stand.placements.append(self.placed)
        if self.placed.leader < 0:
            self.elect()

    def stop(self, number: int, rng: Random | None = None) -> None:
        """Kill a broker; with a random generator, by a power cut. The controller notices it."""
        stand = self.stands[number]
        stand.alive = False
        if rng is not None:
            stand.disk.power_cut(rng)
        self.image.brokers[number] = replace(self.image.brokers[number], fenced=True)
        for each in list(self.flying):
            if number in (each.sender, each.receiver):
                self.lose(each)
        isr = [each for each in self.placed.isr if each != number] or [number]
        self.decide(isr=isr)
        if self.placed.leader == number:
            self.elect()

    def elect(self) -> None:
        """Elect the first live member of the ISR, if there is one."""
        live = [each for each in self.placed.isr if self.stands[each].alive]
        leader = live[0] if live else -1
        self.decide(leader=leader, leader_epoch=self.placed.leader_epoch + 1)

    def move(self, number: int) -> None:
        """Elect another member of the ISR."""
        if number in self.placed.isr and self.stands[number].alive:
            self.decide(leader=number, leader_epoch=self.placed.leader_epoch + 1)

    def decide(self, **changes: Any) -> None:
        """Commit a change of the partition; all brokers get it, sooner or later."""
        epoch = self.placed.partition_epoch + 1
        self.placed = replace(self.placed, partition_epoch=epoch, **changes)
        for stand in self.stands.values():
            if stand.alive:
                stand.placements.append(self.placed)

    def alter(self, *, lose_answer: bool = False) -> None:
        """Decide on the oldest proposal."""
        stand, life, request, answer = self.proposals.pop(0)
        (topic,) = request.topics
        (wanted,) = topic.partitions
        code = self._check(stand, request, wanted)
        if code is ErrorCode.NONE:
            self.decide(isr=[member.broker_id for member in wanted.new_isr_with_epochs])
            if self.placed.leader not in self.placed.isr:
                self.elect()
            if self.placed.leader != stand.node_id:
                code = ErrorCode.NEW_LEADER_ELECTED
        else:
            self.refusals += 1
        told = AlterPartitionResponsePartitionData(
            error_code=code,
            leader_id=self.placed.leader,
            leader_epoch=self.placed.leader_epoch,
            isr=list(self.placed.isr),
            partition_epoch=self.placed.partition_epoch,
        )
        by_topic = AlterPartitionResponseTopicData(topic_id=TOPIC_ID, partitions=[told])
        if not stand.alive or stand.life != life:
            return
        if lose_answer:
            stand.do(lambda: answer.fail(ConnectionError()))
        else:
            stand.do(lambda: answer.complete(AlterPartitionResponse(topics=[by_topic])))

    def _check(
        self,
        stand: SimulatedBroker,
        request: AlterPartitionRequest,
        wanted: AlterPartitionRequestPartitionData,
    ) -> ErrorCode:
        brokers = self.image.brokers
        if request.broker_epoch != brokers[stand.node_id].broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if wanted.leader_epoch != self.placed.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if wanted.partition_epoch != self.placed.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for member in wanted.new_isr_with_epochs:
            broker = brokers[member.broker_id]
            if not broker.is_active or member.broker_epoch not in (-1, broker.broker_epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE

    # The network.

    def send(self, sender: SimulatedBroker, ask: Ask) -> None:
        """Send a queued request."""
        receiver = ask.address.port
        flying = PendingRequest(sender.node_id, receiver, ask)
        flying.sender_life, flying.receiver_life = sender.life, self.stands[receiver].life
        assert ask.address == Address("h", receiver)
        self.flying.append(flying)

    def lane(self, of: PendingRequest) -> list[PendingRequest]:
        """Return the pending requests on the same connection, in order."""
        return [
            each
            for each in self.flying
            if (each.sender, each.receiver, each.ask.lane) == (of.sender, of.receiver, of.ask.lane)
        ]

    def lose(self, flying: PendingRequest) -> None:
        """Break the connection of a request."""
        for each in self.lane(flying):
            self.flying.remove(each)
            if isinstance(each.answer, Pending):
                each.answer.abandon()
            self._report(each, None)

    def deliver(self, flying: PendingRequest) -> bool:
        """Deliver a request, or its response if there is one; return whether that worked."""
        receiver = self.stands[flying.receiver]
        if not receiver.alive or receiver.life != flying.receiver_life:
            self.lose(flying)
            return True
        if not flying.arrived:
            waiting = next(each for each in self.lane(flying) if not each.arrived)
            self._arrive(waiting, receiver)
            return True
        first = self.lane(flying)[0]
        if first.answer is None or isinstance(first.answer, Pending):
            return False
        self.flying.remove(first)
        self._report(first, joined(first.answer))
        return True

    def _arrive(self, flying: PendingRequest, receiver: SimulatedBroker) -> None:
        flying.arrived = True
        request = codec.parse_request(18, memoryview(flying.ask.body), 0)
        context = RequestContext(18, None, ITSELF, self.now_ms)

        def handle() -> None:
            answer = fetch.handle(cast("Node", receiver), request, context)
            flying.answer = answer
            if isinstance(answer, Pending):
                answer.when_done(lambda chunks: setattr(flying, "answer", _read(chunks)))
            else:
                flying.answer = _read(answer)

        receiver.do(handle)

    def _report(self, flying: PendingRequest, body: bytes | None) -> None:
        sender = self.stands[flying.sender]
        if sender.alive and sender.life == flying.sender_life:
            shown = None if body is None else memoryview(body)
            sender.do(lambda: flying.ask.done(shown))

    # Time, and everything at once.

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass, and fire the timers that are due."""
        self.now_ms += duration_ms
        for stand in self.stands.values():
            if stand.alive:
                stand.do(stand.timers.fire)

    def settle_all(self, rounds: int = 60) -> None:
        """Complete everything that is pending, repeatedly."""
        for _ in range(rounds):
            self.run()
            self.pass_time(50)

    def run(self) -> None:
        """Complete everything that needs no time."""
        moved = True
        while moved:
            moved = False
            for stand in self.stands.values():
                while stand.alive and stand.placements:
                    stand.apply_next_decision()
                    moved = True
                while stand.alive and stand.held:
                    stand.finish_sync()
                    moved = True
            while self.proposals:
                self.alter()
                moved = True
            for flying in list(self.flying):
                if flying in self.flying and self.deliver(flying):
                    moved = True


def _read(chunks: list[Chunk]) -> list[Chunk]:
    """Read a response while its files exist."""
    return [joined(chunks)]


def joined(chunks: list[Chunk]) -> bytes:
    """Return a response as bytes."""
    return b"".join(
        chunk.file.read(chunk.position, chunk.length) if isinstance(chunk, FileSlice) else chunk
        for chunk in chunks
    )
