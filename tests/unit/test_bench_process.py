"""Tests the processes that the benchmark starts, and its command line."""

import os
import struct
import sys
from pathlib import Path

import pytest

from bench.__main__ import parser, plan_of, saves
from bench.measure import Plan
from bench.places import kafka_version
from bench.process import (
    LoadError,
    Process,
    last_line,
    lines_until,
    output_of,
    parse_status_mb,
)
from bench.running import answers_metadata, broker_count, bytes_under

COUNT_FOREVER = "import itertools\nfor n in itertools.count(): print(n, flush=True)"


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def plan(*words: str) -> Plan:
    return plan_of(parser().parse_args(words))


def test_a_load_is_run_to_its_end() -> None:
    assert output_of(python("print('done')"), 30) == "done\n"


def test_a_load_that_fails_gives_its_last_words_as_the_reason() -> None:
    with pytest.raises(LoadError, match=r"^no ack$"):
        output_of(python("import sys; print('x'); sys.exit('so far so good\\nno ack')"), 30)


def test_a_load_that_hangs_is_ended() -> None:
    with pytest.raises(LoadError, match="not finished after"):
        output_of(python("import time; time.sleep(60)"), 0.2)


def test_a_load_that_reports_as_it_goes_is_ended_once_that_is_enough() -> None:
    lines = lines_until(python(COUNT_FOREVER), lambda seen: len(seen) == 3, 30)
    assert lines == ["0", "1", "2"]


def test_a_load_that_ends_too_soon_is_a_failure() -> None:
    with pytest.raises(LoadError, match=r"ended before.*: bye"):
        lines_until(python("print('bye')"), lambda _: False, 30)


def test_a_broker_s_use_is_seen_and_it_is_stopped(tmp_path: Path) -> None:
    with Process(python(COUNT_FOREVER), tmp_path / "log") as process:
        while process.usage().cpu_s < 0.05:
            assert process.alive
        assert 1 < process.usage().resident_mb <= process.usage().resident_max_mb
    assert not process.alive
    assert process.last_words().isdigit()


def test_memory_is_read_from_proc() -> None:
    assert parse_status_mb("Name:\tx\nVmRSS:\t    1000 kB\n", "VmRSS") == pytest.approx(1.024)
    assert parse_status_mb("State:\tZ (zombie)\n", "VmRSS") == 0.0


def test_the_last_line_that_says_something() -> None:
    assert last_line("one\ntwo\n\n") == "two"
    assert last_line("") == ""


def test_ready_needs_a_broker_in_the_metadata() -> None:
    assert broker_count(struct.pack(">iii", 8, 1, 1)) == 1
    assert broker_count(struct.pack(">iii", 8, 1, 0)) == 0
    assert broker_count(b"\0\0") == 0


def test_there_is_no_response_on_a_closed_port() -> None:
    assert not answers_metadata(1)


def test_bytes_under_a_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(os.urandom(100_000))
    (tmp_path / "__consumer_offsets-7").mkdir()
    (tmp_path / "__consumer_offsets-7" / "file").write_bytes(os.urandom(1_000_000))
    assert 100_000 <= bytes_under(tmp_path) < 1_000_000


def test_the_pom_names_the_version() -> None:
    assert kafka_version("<kafka.version>4.3.0</kafka.version>") == "4.3.0"


def test_by_default_all_rows_run_on_both_brokers_in_three_rounds() -> None:
    full = plan()
    assert [broker.name for broker in full.brokers] == ["barnabas", "kafka"]
    assert full.rounds == 3
    assert full.with_broker_row
    assert full.steps == 3 * 2 * (len(full.rows) + 1)


def test_one_row_alone() -> None:
    one = plan("--only", "ack-latency", "--quick")
    assert [row.key for row in one.rows] == ["ack-latency"]
    assert one.rounds == 1
    assert not one.with_broker_row


def test_an_unknown_row_or_broker_is_answered_with_the_known_ones() -> None:
    with pytest.raises(SystemExit, match="there are: ack-latency, "):
        plan("--only", "nonsense")
    with pytest.raises(SystemExit, match="there are: barnabas, kafka"):
        plan("--brokers", "nonsense")


@pytest.mark.parametrize(
    ("words", "written"),
    [([], True), (["--quick"], False), (["--quick", "--save"], True), (["--no-save"], False)],
)
def test_only_a_whole_run_replaces_the_results_by_default(words: list[str], written: bool) -> None:
    assert saves(parser().parse_args(words)) is written
