"""Tests that slow requests are logged at a bounded rate, and kept with where their time went."""

import json
from collections.abc import Callable, Iterator
from io import StringIO

import pytest

from barnabas import logs
from barnabas.model.callers import CLIENT_LISTENER, Caller, Principal
from barnabas.model.meters import AnsweredRequest
from barnabas.model.settings import ObservabilitySettings
from barnabas.protocol.api_keys import ApiKey
from barnabas.server.metrics.broker_meters import BrokerMeters
from barnabas.server.metrics.client_rates import CLIENTS_MAX, ClientRates
from barnabas.server.metrics.slow_requests import EVENT, KEPT_MAX, LINES_A_SECOND, SlowRequests
from barnabas.testing.broker import Broker
from tests.support.http_client import ask

MS = 1_000_000


class Clock:
    now_ms = 5_000

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_clock_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms


@pytest.fixture
def log() -> Iterator[StringIO]:
    stream = StringIO()
    logs.configure(json=True, stream=stream)
    yield stream
    logs.configure()


def lines(log: StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def request(
    latency_ms: float, api: ApiKey = ApiKey.PRODUCE, handler_ms: float = 1, queued_ms: int = 0
) -> AnsweredRequest:
    caller = Caller(Principal("User", "ada"), CLIENT_LISTENER, "10.0.0.9")
    made = AnsweredRequest(caller)
    made.api_key, made.api_version = int(api), 9
    made.client_id, made.bytes_in, made.partitions = "gpu-1", 1234, 3
    made.latency_ns, made.handler_ns = int(latency_ms * MS), int(handler_ms * MS)
    made.queued_ms = queued_ms
    return made


def meters(**settings: object) -> BrokerMeters:
    return BrokerMeters(ObservabilitySettings(**settings), Clock(), is_alone=True)  # type: ignore[arg-type]


def test_a_slow_request_is_logged_with_where_the_time_went(log: StringIO) -> None:
    slow = SlowRequests(Clock(), is_alone=False)
    now_ns = 10_000 * MS
    slow.note_sync(now_ns - 500 * MS, now_ns - 200 * MS)
    slow.note_sync(now_ns - 100 * MS, now_ns - 90 * MS)
    slow.note("Produce", request(600, handler_ms=50, queued_ms=20), now_ns)
    (line,) = lines(log)
    assert (line["event"], line["level"]) == (EVENT, "warning")
    expected = {
        "api": "Produce v9",
        "client_id": "gpu-1",
        "principal": "User:ada",
        "client": "10.0.0.9",
        "listener": "PLAINTEXT",
        "bytes_in": 1234,
        "partitions": 3,
        "total_ms": 620.0,
        "queue_ms": 20,
        "handler_ms": 50.0,
        "disk_ms": 300.0,
        "peers_ms": 250.0,
    }
    assert expected.items() <= line.items()
    assert expected.items() <= next(iter(slow.newest_first())).items()


def test_the_time_that_the_client_takes_to_read_is_added_later(log: StringIO) -> None:
    due: list[Callable[[], None]] = []
    slow = SlowRequests(Clock(), is_alone=True, later=lambda _, action: due.append(action))
    unsent = ["a part", "another"]
    answered = request(600)
    answered.unsent = unsent
    slow.note("Produce", answered, 0)
    slow.note("Produce", request(700), 0)
    first, second = slow.last
    for _ in range(3):
        due.pop()()
    assert (second["sending_ms"], "sending_ms" in first) == (0, False)
    unsent.clear()
    due.pop()()
    assert first["sending_ms"] == 30
    assert due == []


def test_ten_lines_a_second_and_the_next_says_how_many_were_left_out(log: StringIO) -> None:
    clock = Clock()
    slow = SlowRequests(clock, is_alone=True)
    for _ in range(LINES_A_SECOND + 7):
        slow.note("Produce", request(600), 0)
    assert len(lines(log)) == LINES_A_SECOND
    clock.now_ms += 1_000
    slow.note("Produce", request(600), 0)
    assert lines(log)[-1]["left_out"] == 7
    for _ in range(LINES_A_SECOND):
        slow.note("Produce", request(600), 0)
    slow.tell_left_out()
    assert lines(log)[-1]["left_out"] == 1
    slow.tell_left_out()
    assert len(lines(log)) == 2 * LINES_A_SECOND + 1
    assert slow.count == 2 * LINES_A_SECOND + 8


def test_the_last_two_hundred_are_kept(log: StringIO) -> None:
    slow = SlowRequests(Clock(), is_alone=True)
    for number in range(KEPT_MAX + 5):
        slow.note("Produce", request(600 + number), 0)
    kept = list(slow.newest_first())
    assert len(kept) == KEPT_MAX
    assert kept[0]["total_ms"] == 600.0 + KEPT_MAX + 4


def test_limits_by_api(log: StringIO) -> None:
    counted = meters(slow_request_times=("Fetch:2s", "CreateTopics:0"))
    for each in (
        request(499),
        request(501),
        request(1_000, ApiKey.FETCH),
        request(2_001, ApiKey.FETCH),
        request(60_000, ApiKey.CREATE_TOPICS),
    ):
        counted.count_request(each)
    assert [line["api"] for line in lines(log)] == ["Produce v9", "FetchConsumer v9"]


def test_time_behind_other_requests_of_the_connection_counts(log: StringIO) -> None:
    counted = meters()
    counted.count_request(request(1, queued_ms=600))
    assert counted.slow.count == 1


def test_zero_logs_none(log: StringIO) -> None:
    counted = meters(slow_request_ms=0)
    counted.count_request(request(10**6))
    assert lines(log) == []


def test_numbers_that_are_no_api_share_a_meter(log: StringIO) -> None:
    counted = meters()
    for number in range(20_000, 20_100):
        made = request(1)
        made.api_key, made.error_code = number, 42
        counted.count_request(made)
    assert [(each.name, dict(each.versions)) for each in counted.apis] == [("Unknown", {-1: 100})]


def test_made_up_client_ids_and_software_take_bounded_memory() -> None:
    rates = ClientRates()
    for number in range(CLIENTS_MAX + 10):
        client = rates.find(f"client-{number}")
        if client is not None:
            client.produced.size += number
            client.produced.requests += 1
    assert len(rates) == CLIENTS_MAX
    assert rates.find("one more") is None
    rates.turn(10_000)
    assert next(iter(rates.busiest()))[0] == f"client-{CLIENTS_MAX - 1}"
    for _ in range(7):
        rates.turn(10_000)
    assert len(rates) == 0
    counted = meters()
    named = [(f"software-{number}", "1") for number in range(1_000)]
    for each in named:
        counted.name_software(each)
    assert len(counted.software) <= 101
    for each in named:
        counted.forget_software(each)
    assert sum(counted.software.values()) == 0


def test_rates_and_pauses_of_a_client() -> None:
    rates = ClientRates()
    flow = rates.find("gpu-1")
    assert flow is not None
    for pause_ms in (0, 300):
        flow.produced.size += 50_000
        flow.produced.requests += 1
        flow.produced.throttle_ms += pause_ms
    rates.turn(10_000)
    assert (flow.produced.rate, flow.produced.throttle_time_ms) == (10_000.0, 150.0)
    rates.turn(10_000)
    assert (flow.produced.rate, flow.produced.throttle_time_ms) == (0.0, 0.0)


def test_a_broker_shows_its_slow_requests() -> None:
    settings: dict[str, object] = {
        "observability.http_listen": "127.0.0.1:0",
        "observability.slow_request_time": "1ms",
        "storage.flush": "ack",
    }
    from barnabas.client import Producer

    with Broker(settings=settings) as broker:
        with Producer(broker.bootstrap) as producer:
            producer.send("orders", "v")  # which makes the topic
        found = ask(broker.http_address, "/debug/slow").json
    assert found["count"] == len(found["requests"]) > 0
    assert found["requests"][0]["listener"] == "PLAINTEXT"
    assert all(each["total_ms"] >= 1 for each in found["requests"])
