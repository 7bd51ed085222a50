"""Read the dead-letter topic, and send records back to their topics."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from barnabas.admin.admin_errors import kafka_sentence
from barnabas.admin.connecting import existing_topic, metadata, open_consumer, open_producer
from barnabas.admin.partition_reading import Reading, span
from barnabas.admin.topic_positions import At, End
from barnabas.cli.common.failure import CommandError
from barnabas.model.ids import NO_GROUP
from barnabas.telemetry.jobs.redrive import Plan, Refusal, Tally, reason_group, tally

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

    from barnabas.admin.groups.group_admin import Groups

UNSENT_MAX = 500
"""Records of a megabyte must also fit into the client's gigabyte."""

READER = {
    "group.id": NO_GROUP,
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
}

# The broker accepted these records before: its limit decides, not the client's.
WRITER = {"acks": "all", "enable.idempotence": True, "message.max.bytes": 100_000_000}


class Refusals:
    """The dead-letter topic of a cluster, up to its current end."""

    def __init__(self, bootstrap: str, properties: list[str] | None, topic: str) -> None:
        self.topic = topic
        self._bootstrap = bootstrap
        self._properties = properties
        self._consumer: Consumer = open_consumer(bootstrap, properties, READER)
        found = existing_topic(self._consumer, bootstrap, topic)
        self.partitions = sorted(found.partitions)

    def read(self, plan: Plan | None = None) -> Iterator[list[Refusal]]:
        """Yield the records, from the first that the plan needs to the current end."""
        spans = {}
        for partition in self._wanted(plan):
            place = (self.topic, partition)
            whole = span(self._consumer, place, At(0), End())
            first = whole.start if plan is None else plan.start(partition, whole.start)
            spans[place] = span(self._consumer, place, At(first), self._stop(plan))
        for messages in Reading(self._consumer, spans, to_end=True):
            yield [_refusal(message) for message in messages]

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def send(self, refusals: list[Refusal]) -> None:
        """Send records back to their topics, and wait until all are delivered."""
        producer = open_producer(self._bootstrap, self._properties, WRITER)
        counts = {
            name: len(found.partitions)
            for name, found in metadata(producer, self._bootstrap).topics.items()
        }
        failures: list[str] = []

        def settle(error: "KafkaError | None", _: "Message") -> None:
            if error is not None:
                failures.append(kafka_sentence(error))

        for each in refusals:
            topic, partition = _target(each, counts)
            while len(producer) >= UNSENT_MAX:
                producer.poll(0.1)
            producer.produce(
                topic,
                value=each.value,
                key=each.key,
                headers=each.headers_to_send(),
                partition=partition,
                on_delivery=settle,
            )
        left = producer.flush(60)
        if left or failures:
            why = failures[0] if failures else "no answer within 60 s"
            raise CommandError(
                f"{left + len(failures)} of {len(refusals)} records could not be sent back "
                f"({why}); none of this batch is marked as redriven: run the command again"
            )

    def _wanted(self, plan: Plan | None) -> list[int]:
        wanted = None if plan is None else plan.choice.partition
        if wanted is None:
            return self.partitions
        if wanted not in self.partitions:
            raise CommandError(
                f"{self.topic} has no partition {wanted}; it has 0 to {self.partitions[-1]}"
            )
        return [wanted]

    def _stop(self, plan: Plan | None) -> End | At:
        offset = None if plan is None else plan.choice.offset
        return End() if offset is None else At(offset + 1)


def count_refusals(bootstrap: str, properties: list[str] | None, topic: str) -> dict[str, Tally]:
    """Return the number of dead letters by reason."""
    refusals = Refusals(bootstrap, properties, topic)
    counts: dict[str, Tally] = {}
    try:
        for batch in refusals.read():
            tally(batch, counts)
    finally:
        refusals.close()
    return counts


def commits(groups: "Groups", group: str, topic: str) -> dict[int, int]:
    """Return the committed offsets of a group in the dead-letter topic."""
    found = groups.committed(group)
    return {partition: offset for (name, partition), offset in found.items() if name == topic}


def learn(plan: Plan, groups: "Groups", topic: str, reasons: set[str]) -> None:
    """Tell the plan which records were redriven for other reasons."""
    for reason in reasons - set(plan.by_reason):
        plan.by_reason[reason] = commits(groups, reason_group(reason), topic)


def _target(each: Refusal, counts: Mapping[str, int]) -> tuple[str, int]:
    origin = each.origin
    assert origin is not None, "the plan takes only records that say where they came from"
    if origin.topic not in counts:
        raise CommandError(
            f"Topic {origin.topic}, where the records came from, no longer exists; create it with "
            f"`barnabas topic create {origin.topic}`"
        )
    known = origin.partition is not None and origin.partition < counts[origin.topic]
    # The original partition keeps a GPU's samples together, whatever hash its producer used.
    return origin.topic, origin.partition if known and origin.partition is not None else -1


def _refusal(message: "Message") -> Refusal:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return Refusal(
        partition=partition,
        offset=offset,
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple((name, _bytes(value)) for name, value in pairs),
    )


def _bytes(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
