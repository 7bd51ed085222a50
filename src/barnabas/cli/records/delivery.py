"""Send records and count delivered, failed and skipped ones."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.admin.admin_errors import kafka_sentence
from barnabas.admin.wording import plural

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

    from barnabas.cli.records.input_lines import Outgoing

ROOM_WAIT_S = 0.1
ANY_PARTITION = -1
REASONS_SHOWN = 3


class Delivery:
    """Sends records to one topic and counts their results."""

    def __init__(self, producer: "Producer", topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._reasons: Counter[str] = Counter()
        self.sent = 0
        self.delivered = 0
        self.failed = 0
        self.skipped = 0
        self.unknown = 0
        self.bytes_read = 0

    @property
    def is_perfect(self) -> bool:
        """Whether all records were delivered."""
        return self.delivered == self.sent and not self.skipped

    def send(self, record: "Outgoing") -> None:
        """Queue one record; wait if the queue is full."""
        from confluent_kafka import KafkaException

        self.sent += 1
        while True:
            try:
                self._produce(record)
            except BufferError:
                self._producer.poll(ROOM_WAIT_S)
            except KafkaException as error:
                self._fail(kafka_sentence(error.args[0]))
                return
            else:
                self._producer.poll(0)
                return

    def finish(self, tick: Callable[[], None] = lambda: None) -> None:
        """Wait until every record has a result; librdkafka has a timeout for each."""
        while self._producer.flush(ROOM_WAIT_S):
            tick()

    def give_up(self) -> None:
        """Stop waiting, after a short time for records in flight."""
        self._producer.flush(1.0)
        self.unknown = self.sent - self.delivered - self.failed

    def summary(self, seconds: float) -> str:
        """Return the summary line of the command."""
        parts = [f"{plural(self.delivered, 'record')} delivered to {self._topic}"]
        if self.failed:
            parts.append(f"{self.failed:,} FAILED ({self._reason_text()})")
        if self.unknown:
            parts.append(f"{self.unknown:,} interrupted, delivered or not")
        if self.skipped:
            parts.append(f"{self.skipped:,} bad lines skipped")
        return f"{', '.join(parts)} in {seconds:.1f} s"

    def _produce(self, record: "Outgoing") -> None:
        optional: dict[str, object] = {}
        if record.timestamp_ms is not None:
            optional["timestamp"] = record.timestamp_ms
        if record.headers:
            optional["headers"] = record.headers
        self._producer.produce(
            self._topic,
            value=record.value,
            key=record.key,
            partition=ANY_PARTITION if record.partition is None else record.partition,
            on_delivery=self._on_delivery,
            **optional,
        )

    def _on_delivery(self, error: "KafkaError | None", _: "Message") -> None:
        if error is None:
            self.delivered += 1
        else:
            self._fail(kafka_sentence(error))

    def _fail(self, reason: str) -> None:
        self.failed += 1
        self._reasons[reason] += 1

    def _reason_text(self) -> str:
        shown = [f"{count:,} x {reason}" for reason, count in self._reasons.most_common()]
        return "; ".join(shown[:REASONS_SHOWN])
