"""Tests that traces continue from producers to consumers."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from barnabas.client import (
    AsyncProducer,
    Consumer,
    Message,
    NotDeliveredError,
    Producer,
    Record,
    SendResult,
    SettingError,
    TopicPartition,
)
from barnabas.client import producer as producer_module
from barnabas.client.client_messages import to_header_list
from barnabas.client.tracing import SendTracing, context_of, processing
from barnabas.testing.broker import Broker

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
RESULT = SendResult(topic="orders", partition=2, offset=7, timestamp_ms=1)
Spans = InMemorySpanExporter


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The spans that end in the test."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def message(**headers: bytes | None) -> Message:
    return Message(
        topic="orders",
        partition=1,
        offset=5,
        key=None,
        value=b"x",
        headers=tuple(headers.items()),
    )


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def identity(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def traceparent(record: Record) -> str:
    (value,) = [value for name, value in to_header_list(record.headers) if name == "traceparent"]
    assert value is not None
    return value.decode()


def test_a_record_carries_the_span_of_its_sending(spans: Spans) -> None:
    future: Future[SendResult] = Future()
    record = SendTracing().started("orders", Record(value="x", headers={"a": "b"}), future)
    future.set_result(RESULT)
    (span,) = spans.get_finished_spans()
    trace_id, span_id = identity(span)
    assert traceparent(record).startswith(f"00-{trace_id:032x}-{span_id:016x}-")
    assert ("a", b"b") in to_header_list(record.headers)
    assert (span.name, span.kind.name, parent_of(span)) == ("send orders", "PRODUCER", None)
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.destination.name": "orders",
        "messaging.operation.type": "send",
        "messaging.operation.name": "send",
        "messaging.destination.partition.id": "2",
        "messaging.kafka.offset": 7,
    }


def test_the_current_span_is_the_parent(spans: Spans) -> None:
    future: Future[SendResult] = Future()
    with processing(message(traceparent=PARENT.encode())) as outer:
        given = Record(
            value="x", headers={"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}
        )
        record = SendTracing().started("orders", given, future)
    future.set_result(RESULT)
    context = outer.get_span_context()
    inner = spans.get_finished_spans()[-1]
    assert parent_of(inner) == (context.trace_id, context.span_id)
    assert traceparent(record).split("-")[1] == PARENT.split("-")[1]


def test_a_message_that_is_passed_on_stays_in_its_trace(spans: Spans) -> None:
    future: Future[SendResult] = Future()
    record = SendTracing().started(
        "orders", Record(value="x", headers={"traceparent": PARENT}), future
    )
    future.set_result(RESULT)
    (span,) = spans.get_finished_spans()
    assert parent_of(span) == (TRACE, SPAN)
    assert traceparent(record) == f"00-{TRACE:032x}-{identity(span)[1]:016x}-01"


def test_the_span_of_a_record_that_is_not_delivered_has_the_error(spans: Spans) -> None:
    future: Future[SendResult] = Future()
    SendTracing().started("orders", Record(value="x"), future)
    future.set_exception(NotDeliveredError("the broker is away"))
    (span,) = spans.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (
        StatusCode.ERROR,
        "the broker is away",
    )


def test_processing_continues_the_trace_of_the_message(spans: Spans) -> None:
    with processing(message(other=None, traceparent=PARENT.encode())):
        pass
    with pytest.raises(ValueError, match="broken"), processing(message(), "handle order"):
        raise ValueError("broken")
    first, second = spans.get_finished_spans()
    assert (first.name, first.kind.name, parent_of(first)) == (
        "process orders",
        "CONSUMER",
        (TRACE, SPAN),
    )
    assert dict(first.attributes or {})["messaging.kafka.offset"] == 5
    assert (second.name, parent_of(second)) == ("handle order", None)
    assert second.status.status_code is StatusCode.ERROR


@pytest.mark.parametrize("value", [b"", b"00-zz-yy-01", b"\xff\xfe", None])
def test_headers_that_are_no_trace_begin_a_new_one(spans: Spans, value: bytes | None) -> None:
    assert not context_of(message(traceparent=value))
    with processing(message(traceparent=value)):
        pass
    (span,) = spans.get_finished_spans()
    assert parent_of(span) is None


def test_a_trace_goes_through_a_broker(spans: Spans) -> None:
    async def send(bootstrap: str) -> None:
        async with AsyncProducer(bootstrap, tracing=True) as producer:
            await producer.send("orders", "second", partition=0)

    with Broker() as broker:
        with Producer(broker.bootstrap, tracing=True) as producer:
            producer.send("orders", "first", partition=0)
        asyncio.run(send(broker.bootstrap))
        with Producer(broker.bootstrap) as plain:
            plain.send("orders", "third", partition=0)
        with Consumer(broker.bootstrap) as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            found = [consumer.poll(10.0) for _ in range(3)]
    sent = [identity(span) for span in spans.get_finished_spans()]
    assert len(sent) == 2
    for each in found:
        assert each is not None
        with processing(each):
            pass
    received = [parent_of(span) for span in spans.get_finished_spans()[2:]]
    assert received == [*sent, None]
    assert found[2] is not None
    assert found[2].headers == ()


def test_without_opentelemetry_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(_: str) -> None:
        raise ModuleNotFoundError

    monkeypatch.setattr(producer_module, "import_module", missing)
    with pytest.raises(SettingError, match=r"pip install 'barnabas\[otel\]'"):
        Producer("127.0.0.1:1", tracing=True)
