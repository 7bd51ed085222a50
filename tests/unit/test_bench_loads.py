"""Tests the loads of the benchmark: how the output of clients is read."""

import json

import pytest

from bench.brokers import BROKERS, Flush
from bench.coordination_rows import GROUPS
from bench.java_loads import (
    JavaProduce,
    Window,
    after_warmup,
    enough,
    parse_consumer_performance,
    parse_windows,
    payloads,
)
from bench.loads import Target, answer, bulk
from bench.process import LoadError
from bench.rows import ROWS

PRODUCER_SAYS = [
    "SLF4J: a line about something else",
    "50000 records sent, 100000.0 records/sec (9.54 MB/sec), 12.0 ms avg latency, 40.0 ms max.",
    "0 records sent, 0.0 records/sec (0.00 MB/sec), NaN ms avg latency, 0.0 ms max latency.",
    "120000 records sent, 240000.0 records/sec (22.89 MB/sec), 9.0 ms avg latency, 20.0 ms max.",
]

CONSUMER_SAYS = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, \
rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-01-01 00:00:00:000, 2026-01-01 00:00:03:000, 300.0, 100.0, 300000, 100000.0, \
1000, 2000, 150.0, 150000.0
"""


def test_windows_are_read_from_what_the_producer_reports() -> None:
    assert parse_windows(PRODUCER_SAYS) == [Window(50000, 0.5), Window(120000, 0.5)]


def test_windows_that_begin_in_the_warm_up_are_left_out() -> None:
    windows = [Window(1, 0.5), Window(2, 0.5), Window(3, 0.5)]
    assert after_warmup(windows, 0.8) == [Window(3, 0.5)]
    assert after_warmup(windows, 0.0) == windows


def test_a_producer_that_never_left_its_warm_up_is_a_failure() -> None:
    with pytest.raises(LoadError, match="no window"):
        after_warmup([Window(1, 0.5)], 1.0)


def test_a_run_lasts_until_its_windows_cover_the_time() -> None:
    assert not enough([Window(1, 0.5)], 1.0)
    assert enough([Window(1, 0.5), Window(1, 0.5)], 1.0)


def test_the_consumer_is_rated_without_the_time_it_took_to_join() -> None:
    assert parse_consumer_performance(CONSUMER_SAYS) == 150000.0


def test_a_consumer_that_printed_only_its_header_is_a_failure() -> None:
    with pytest.raises(LoadError, match="no result"):
        parse_consumer_performance(CONSUMER_SAYS.splitlines()[0])


def test_native_programs_answer_with_one_json_line() -> None:
    assert answer(json.dumps({"messages": 3, "seconds": 1.5}) + "\n") == {
        "messages": 3.0,
        "seconds": 1.5,
    }


def test_bulk_figures() -> None:
    figures = bulk(messages=1000, seconds=2.0, size=1000, cpu_s=1.0, moved=2000)
    assert figures == {"messages_per_s": 500.0, "mb_per_s": 0.5, "cpu_s_per_gb": 500.0}


@pytest.mark.parametrize("size", [100, 1024])
def test_payloads_have_their_size_and_are_the_same_in_every_run(size: int) -> None:
    assert {len(text) for text in payloads(size)} == {size}
    assert payloads(size) == payloads(size)
    assert "\n" not in "".join(payloads(size))


def test_row_keys_are_unique() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)


def test_flush_policies_are_equal_on_both_brokers() -> None:
    ours, theirs = BROKERS["barnabas"], BROKERS["kafka"]
    assert ours.topic_config(Flush.LATER) == {"flush": "interval", "flush.ms": str(2**63 - 1)}
    assert theirs.topic_config(Flush.LATER) == {}
    assert ours.topic_config(Flush.SECOND) == {"flush": "interval", "flush.ms": "1000"}
    assert theirs.topic_config(Flush.SECOND) == {"flush.ms": "1000"}
    assert ours.topic_config(Flush.ACK) == {"flush": "ack"}
    assert theirs.topic_config(Flush.ACK) == {"flush.messages": "1"}


def test_rows_of_coordinators_are_run_under_both_flush_policies() -> None:
    keys = {row.key for row in ROWS if row.internal_topics and "rebalance" not in row.key}
    assert {key for key in keys if not key.endswith("-flush")} == {
        key.removesuffix("-flush") for key in keys if key.endswith("-flush")
    }
    assert all(row.flush is (Flush.ACK if "flush" in row.key else Flush.LATER) for row in GROUPS)


def test_transactions_are_asked_for_by_their_age() -> None:
    target = Target(
        port=9092, topic="t", partitions=1, output="", seconds=1, warmup=1, cpu_s=lambda: 0.0
    )
    plain, transactional = (
        [str(word) for word in JavaProduce(size=100, transaction_ms=ms).command(target)]
        for ms in (0, 10)
    )
    assert transactional == [*plain, "--transaction-duration-ms", "10"]
