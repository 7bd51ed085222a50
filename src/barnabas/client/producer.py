"""A producer with blocking sends, futures and callbacks.

    with Producer("127.0.0.1:9092") as producer:
        result = producer.send("orders", "hello", key="customer-7")
        print(result.partition, result.offset)

`send` waits for the broker. `send_async` returns a future immediately and gives the highest
throughput, because librdkafka collects records into batches. `send_async` waits only if a hundred
thousand records are queued.
"""

import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import confluent_kafka

from barnabas.client.arguments import as_records, as_timeout, refused_record
from barnabas.client.client_messages import (
    Data,
    Headers,
    Record,
    SendResult,
    produce_arguments,
)
from barnabas.client.client_settings import (
    DEFAULT_BOOTSTRAP,
    Setting,
    Settings,
    for_producer,
    setting_error,
)
from barnabas.client.deliveries import settling
from barnabas.client.errors import (
    ClientError,
    ClosedError,
    NotDeliveredError,
    SettingError,
    from_exception,
)
from barnabas.client.pump import LAST_FLUSH_S, Pump

if TYPE_CHECKING:
    from barnabas.client.tracing import SendTracing

REFUSALS = (TypeError, ValueError, OverflowError, AttributeError)
"""The exceptions of confluent-kafka for a record that cannot be sent."""

OnResult = Callable[[Future[SendResult]], None]


class Producer:
    """Sends records; safe to share between threads."""

    def __init__(
        self,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        *,
        acks: str = "all",
        compression: str = "none",
        linger_ms: float = 1,
        tracing: bool = False,
        settings: Settings | None = None,
    ) -> None:
        """With `tracing` each record has a span, and headers that continue its trace."""
        properties = for_producer(
            bootstrap, acks=acks, compression=compression, linger_ms=linger_ms, settings=settings
        )
        self._tracing = tracing_if(tracing)
        self._kafka = open_producer(properties)
        self._closed = False
        self._pump = Pump(self._kafka)
        # Runs on collection and at exit, so that queued records are not lost silently.
        weakref.finalize(self, self._pump.shut)

    def send(
        self,
        topic: str,
        value: Data,
        *,
        key: Data = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> SendResult:
        """Send one record and wait until the broker has it."""
        self._pump.require_no_callback()
        record = Record(
            value=value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        return self.send_async(topic, record).result()

    def send_async(
        self, topic: str, record: Record | Data, on_result: OnResult | None = None
    ) -> Future[SendResult]:
        """Queue one record; the future completes with its offset, or with a `ClientError`.

        `on_result` is called with the completed future, on a thread that handles delivery reports:
        the producer's own, or one that flushes. It must not wait for other records. Its
        exceptions are logged.
        """
        future: Future[SendResult] = Future()
        if on_result is not None:
            future.add_done_callback(on_result)
        self._enqueue(topic, record if isinstance(record, Record) else Record(value=record), future)
        return future

    def send_batch(self, topic: str, records: Iterable[Record | Data]) -> list[SendResult]:
        """Send several records and wait for all; raise the first error once all have a result.

        A record that cannot be sent ends the batch: earlier records are sent, and its error is
        raised.
        """
        self._require_open()
        self._pump.require_no_callback()
        try:
            futures = [self.send_async(topic, record) for record in as_records(records)]
        except ClientError:
            self._pump.flush(None)
            raise
        self._pump.flush(None)
        return [future.result() for future in futures]

    def flush(self, timeout_s: float | None = None) -> None:
        """Return once every queued record has a result, or raise after the timeout."""
        self._require_open()
        left = self._pump.flush(as_timeout(timeout_s))
        if left:
            raise NotDeliveredError(f"{left} records were still undelivered after {timeout_s} s")

    def close(self, timeout_s: float | None = LAST_FLUSH_S) -> None:
        """Flush and stop; raise `NotDeliveredError` if records remain after the timeout.

        All futures complete in either case, those of remaining records with `NotDeliveredError`.
        None waits until each record is delivered or has failed. Ctrl-C drops the remaining
        records immediately.
        """
        limit_s = as_timeout(timeout_s)
        self._closed = True
        left = self._pump.shut(limit_s)
        if left:
            raise given_up(left, limit_s)

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _enqueue(self, topic: str, record: Record, future: Future[SendResult]) -> None:
        self._require_open()
        try:
            if self._tracing is not None:
                record = self._tracing.started(topic, record, future)
            arguments = produce_arguments(topic, record)
            self._produce(arguments, future)
        except ClientError:
            raise
        except REFUSALS as exception:
            raise refused_record(topic, record, exception) from exception

    def _produce(self, arguments: dict[str, Any], future: Future[SendResult]) -> None:
        while True:
            try:
                self._kafka.produce(**arguments, on_delivery=settling(future))
            except BufferError:
                self._pump.wait_for_room()
                self._require_open()
            except confluent_kafka.KafkaException as exception:
                future.set_exception(from_exception(exception))
                return
            else:
                if self._closed:  # by another thread, which may have flushed before this record
                    self._pump.give_up_late()
                return

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("this producer is closed; create another one")


def given_up(left: int, limit_s: float | None) -> NotDeliveredError:
    """Return the error for the records that a closing producer dropped."""
    within = "" if limit_s is None else f" within {limit_s:g} s"
    return NotDeliveredError(f"{left} records were not delivered{within}, and were dropped")


def open_producer(properties: dict[str, Setting]) -> confluent_kafka.Producer:
    """Start confluent-kafka's producer, or raise the error for a setting that it rejects."""
    try:
        return confluent_kafka.Producer(properties)
    except (confluent_kafka.KafkaException, TypeError, ValueError) as exception:
        raise setting_error(exception) from exception


def tracing_if(is_asked: bool) -> "SendTracing | None":
    """Return what traces records, if that is asked for; only then OpenTelemetry is loaded."""
    if not is_asked:
        return None
    try:
        module = import_module("barnabas.client.tracing")
    except ModuleNotFoundError as error:
        raise SettingError(
            "tracing=True needs OpenTelemetry's API; type: pip install 'barnabas[otel]'"
        ) from error
    tracing: SendTracing = module.SendTracing()
    return tracing
