"""Several brokers that exchange frames, without a socket, thread or clock.

    brokers = Together(folder)
    brokers.create("a", leaders=[1, 2])
    brokers[1].ask(...)
    brokers.move("a", 0, to=3)

Each is a `Dialogue`. All get the same metadata, as from a controller. When a partition moves,
its log is copied, completely or only its committed part. Requests between brokers are carried out
at once, unless `hold` keeps requests or responses back. Brokers in `dead` get no requests and send
no responses.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from barnabas.effects import Ask, Effect
from barnabas.handlers.registry import dispatch
from barnabas.metadata.image import PartitionImage, changed
from barnabas.metadata.metadata_records import (
    BrokerChanged,
    BrokerRegistered,
    MetadataRecord,
    TopicCreated,
    TopicDeleted,
)
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk, FileSlice
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import encoder
from barnabas.protocol.headers import response_header
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.records import batches
from tests.support.talk.dialogue import PEER, Dialogue

CLIENT_PORT, PEER_PORT = 9000, 19000
"""The base of the ports; a broker's port is this plus its number."""
COPIED_BYTES = 1 << 30
NOBODY = -1


class Together:
    """The brokers by number, from 1 on."""

    def __init__(
        self, folder: Path, count: int = 3, settings: Mapping[str, object] | None = None
    ) -> None:
        self.dead: set[int] = set()
        self.held: list[Callable[[], None]] = []
        """The held requests or responses, in order."""
        self.asked: list[tuple[int, int, int]] = []
        """The pairs of brokers and the API of each request between them."""
        self._held_back: dict[int, str] = {}
        self._talks = {
            number: Talk(self, number, folder / str(number), settings or {})
            for number in range(1, count + 1)
        }
        for number in self._talks:
            self.distribute(_registered(number), _let_in(number))

    def __getitem__(self, number: int) -> "Talk":
        return self._talks[number]

    def distribute(self, *records: MetadataRecord) -> None:
        """Distribute metadata to all brokers."""
        for talk in self._talks.values():
            talk.node.commit(records, talk.now_ms)
            talk.settle()

    def create(
        self,
        name: str,
        leaders: Sequence[int],
        config: Mapping[str, str] | None = None,
        *,
        copied: bool = True,
    ) -> None:
        """Create a topic with these leaders, which are the only replicas in sync."""
        others = list(self._talks) if copied else []
        number = len(self[1].node.image.topics) + 1
        replicas = [[leader, *(n for n in others if n != leader)] for leader in leaders]
        topic_id = f"{number:032x}"
        self.distribute(
            TopicCreated(name=name, topic_id=topic_id, replicas=replicas, config=dict(config or {}))
        )
        for partition, leader in enumerate(leaders):
            self._place(TopicPartition(name, partition), leader, 0)

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.distribute(TopicDeleted(topic_id=self[1].node.image.topics[name].topic_id.hex()))

    def move(self, topic: str, partition: int, to: int, *, committed_only: bool = False) -> None:
        """Make another broker lead a partition, or the same one in another epoch."""
        place = TopicPartition(topic, partition)
        placed = self.placed(place)
        self.copy(place, placed.leader, to, committed_only=committed_only)
        self._place(place, to, placed.leader_epoch + 1)

    def remove_leader(self, topic: str, partition: int) -> None:
        """Leave a partition without a leader."""
        place = TopicPartition(topic, partition)
        self._place(place, NOBODY, self.placed(place).leader_epoch + 1)

    def lead(self, topic: str, partition: int, *, by: int) -> None:
        """Make a broker lead a partition with its own log."""
        place = TopicPartition(topic, partition)
        self._place(place, by, self.placed(place).leader_epoch + 1)

    def stop_commits(self, topic: str, partition: int) -> None:
        """Add a replica to the ISR that never fetches: nothing more is committed."""
        place = TopicPartition(topic, partition)
        placed = self.placed(place)
        others = [number for number in placed.replicas if number != placed.leader]
        self._place(place, placed.leader, placed.leader_epoch, [placed.leader, others[0]])

    def resume_commits(self, topic: str, partition: int) -> None:
        """Remove that replica from the ISR."""
        place = TopicPartition(topic, partition)
        placed = self.placed(place)
        self._place(place, placed.leader, placed.leader_epoch)

    def cut(self, place: TopicPartition, number: int, offset: int) -> None:
        """Truncate a follower's log to the common part with its leader's, as replication does."""
        copy = self.partition(number, place)
        copy.log.truncate(offset)
        copy.follower.truncated()

    def placed(self, place: TopicPartition) -> PartitionImage:
        """Return the replicas of a partition."""
        return self[1].node.image.topics[place.topic].partitions[place.partition]

    def copy(
        self, place: TopicPartition, source: int, target: int, *, committed_only: bool = False
    ) -> None:
        """Append the missing part of another broker's log."""
        ours, theirs = self.partition(source, place), self.partition(target, place)
        upper = ours.high_watermark if committed_only else ours.log.end_offset
        found = ours.log.read(theirs.log.end_offset, COPIED_BYTES, upper, at_least_one=True)
        if found is None:
            return
        records = memoryview(found.file.read(found.position, found.length))
        theirs.log.append_replicated(records, [header for header, _ in batches(records)])
        theirs.flusher.flush()
        self[target].settle()

    def partition(self, number: int, place: TopicPartition) -> Partition:
        """Return one broker's replica."""
        return self[number].node.partitions[place]

    def hold(self, api_key: int, what: str = "requests") -> None:
        """Hold the requests or the responses of one API between brokers."""
        assert what in {"requests", "answers"}
        self._held_back[api_key] = what

    def release(self, count: int | None = None) -> None:
        """Deliver held messages; without a count, stop holding them."""
        if count is None:
            self._held_back.clear()
        chosen, self.held = self.held[:count], self.held[len(self.held[:count]) :]
        for action in chosen:
            action()

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass for all brokers, a millisecond at a time."""
        for _ in range(duration_ms):
            for number, talk in self._talks.items():
                if number not in self.dead:
                    talk.pass_time(1)

    def deliver_request(self, source: int, ask: Ask) -> None:
        """Deliver a request to another broker, and its response back."""
        target = ask.address.port - PEER_PORT
        self.asked.append((source, target, ask.api_key))
        held = self._held_back.get(ask.api_key)
        if held == "requests":
            self.held.append(lambda: self._deliver(source, target, ask))
        else:
            self._deliver(source, target, ask, hold_answer=held == "answers")

    def _deliver(self, source: int, target: int, ask: Ask, *, hold_answer: bool = False) -> None:
        ask = ask.enveloped()

        def respond(body: bytes | None) -> None:
            if source in self.dead:
                return
            ask.done(None if body is None else memoryview(body))
            self[source].settle()

        def answered(body: bytes | None) -> None:
            if hold_answer:
                self.held.append(lambda: respond(body))
            else:
                respond(body)

        if {source, target} & self.dead or ask.api_key == ApiKey.FETCH:
            respond(None)
        else:
            self[target].receive(ask, answered)

    def _place(
        self,
        place: TopicPartition,
        leader: int,
        leader_epoch: int,
        isr: Sequence[int] | None = None,
    ) -> None:
        before = self.placed(place)
        alone = [leader] if leader != NOBODY else []
        after = PartitionImage(
            list(before.replicas),
            leader,
            leader_epoch,
            list(isr or alone),
            partition_epoch=before.partition_epoch + 1,
        )
        topic_id = self[1].node.image.topics[place.topic].topic_id
        self.distribute(changed(topic_id, place.partition, after))
        for talk in self._talks.values():
            talk.node.coordinators.leadership_changed(place)


class Talk(Dialogue):
    """A dialogue with one of several brokers."""

    def __init__(
        self, together: Together, number: int, folder: Path, settings: Mapping[str, object]
    ) -> None:
        self.number = number
        self._together = together
        port = CLIENT_PORT + number
        super().__init__(folder, {**settings, "broker.id": number, "broker.port": port})

    def receive(self, ask: Ask, answered: Callable[[bytes | None], None]) -> None:
        """Handle a request of another broker."""
        key, version = ask.api_key, ask.api_version
        header = RequestHeader(request_api_key=key, request_api_version=version, client_id="peer")
        flexible = version >= APIS[key].flexible_from
        frame = encoder(RequestHeader, 2 if flexible else 1)(header) + ask.body
        answer, _ = dispatch(self.node, memoryview(bytearray(frame)), PEER, self.now_ms)
        head = len(response_header(key, version, 0))

        def distribute(chunks: list[Chunk]) -> None:
            answered(b"".join(_content(chunk) for chunk in chunks)[head:])

        if isinstance(answer, Pending):
            answer.when_done(distribute, lambda _: answered(None))
        elif answer is not None:
            distribute(answer)
        self.settle()

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Ask):
            self._together.deliver_request(self.number, effect)
        else:
            super()._carry_out(effect)


def _registered(number: int) -> BrokerRegistered:
    return BrokerRegistered(
        node_id=number,
        broker_epoch=number,
        incarnation=f"{number:032x}",
        host=f"broker-{number}",
        port=CLIENT_PORT + number,
        peer_host=f"peer-{number}",
        peer_port=PEER_PORT + number,
        rack=None,
    )


def _let_in(number: int) -> BrokerChanged:
    return BrokerChanged(node_id=number, broker_epoch=number, fenced=False, stopping=False)


def _content(chunk: Chunk) -> bytes:
    if isinstance(chunk, FileSlice):
        return chunk.file.read(chunk.position, chunk.length)
    return bytes(chunk)
