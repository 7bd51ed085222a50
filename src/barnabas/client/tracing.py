"""Traces through topics: headers of W3C Trace Context (`traceparent`), by OpenTelemetry's API.

    from barnabas.client import Consumer, Producer
    from barnabas.client.tracing import processing

    with Producer(tracing=True) as producer, tracer.start_as_current_span("checkout"):
        producer.send("orders", "hello")          # has a traceparent header

    for message in consumer:
        with processing(message):                 # a span whose parent is the sender's span
            handle(message)

It needs the extra `otel`. Spans reach a backend only if the program sets up an SDK of
OpenTelemetry; without one a producer still passes on the current trace. Headers are those of the
global propagator: traceparent, tracestate and baggage unless the program chooses another.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from barnabas.client.client_messages import Header, Message, Record, SendResult, to_header_list

TRACER = "barnabas.client"
AnyFuture = Future[SendResult] | asyncio.Future[SendResult]


def context_of(message: Message) -> Context:
    """Return the context that the sender of a message put into its headers."""
    return propagate.extract(_carrier(message.headers), context=Context())


@contextmanager
def processing(message: Message, name: str | None = None) -> Iterator[Span]:
    """Run a block in a span for a message; its parent is the span that sent the message.

    The span has the name "process TOPIC" unless another is given. Exceptions of the block are
    recorded in it.
    """
    attributes = {
        **_common(message.topic, "process"),
        "messaging.destination.partition.id": str(message.partition),
        "messaging.kafka.offset": message.offset,
    }
    with trace.get_tracer(TRACER).start_as_current_span(
        name or f"process {message.topic}",
        context=context_of(message),
        kind=SpanKind.CONSUMER,
        attributes=attributes,
    ) as span:
        yield span


class SendTracing:
    """Gives each record of a producer a span and the headers of it."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer(TRACER)

    def started(self, topic: str, record: Record, future: AnyFuture) -> Record:
        """Begin the span of a record, which ends with its future; return the record with headers.

        The parent is the current span. Without one it is the span that the record's own headers
        name, as those of a message that is passed on. A record that the client refuses has no span.
        """
        headers = to_header_list(record.headers)
        has_current = trace.get_current_span().get_span_context().is_valid
        span = self._tracer.start_span(
            f"send {topic}",
            context=None if has_current else propagate.extract(_carrier(headers)),
            kind=SpanKind.PRODUCER,
            attributes=_common(topic, "send"),
        )
        future.add_done_callback(lambda done: _end(span, done))
        carrier: dict[str, str] = {}
        propagate.inject(carrier, context=trace.set_span_in_context(span))
        return replace(record, headers=with_headers(headers, carrier))


def with_headers(headers: Iterable[Header], carrier: Mapping[str, str]) -> list[Header]:
    """Return headers with those of a trace, which replace older ones of the same names."""
    kept = [(name, value) for name, value in headers if name not in carrier]
    return [*kept, *((name, value.encode()) for name, value in carrier.items())]


def _carrier(headers: Iterable[Header]) -> dict[str, str]:
    """Return headers as a propagator reads them; the last of a name counts."""
    return {
        name.lower(): value.decode(errors="replace") for name, value in headers if value is not None
    }


def _common(topic: str, operation: str) -> dict[str, str | int]:
    """Return the attributes of OpenTelemetry's conventions for messaging."""
    return {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
    }


def _end(span: Span, done: AnyFuture) -> None:
    error = None if done.cancelled() else done.exception()
    if error is not None:
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, str(error)))
    elif not done.cancelled():
        result = done.result()
        span.set_attribute("messaging.destination.partition.id", str(result.partition))
        if result.offset is not None:
            span.set_attribute("messaging.kafka.offset", result.offset)
    span.end()
