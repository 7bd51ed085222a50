"""Tests wide CSV with DCGM's names, as tools/record_gpu.py writes it."""

import pytest

from barnabas.telemetry.collect.dcgm_csv import HeaderError, is_header, parse_rows
from barnabas.telemetry.samples.readings import Reading, Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Snapshot

HEADER = (
    "timestamp,uuid,modelName,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_PROF_DRAM_ACTIVE,"
    "DCGM_FI_PROF_PCIE_TX_BYTES,DCGM_FI_MADE_UP\n"
)


def parsed(*lines: str, tally: Tally | None = None) -> list[Reading]:
    numbered = enumerate((HEADER, *lines), 1)
    return list(parse_rows(numbered, where="f", hostname="here", tally=tally or Tally()))


def test_a_row_is_a_snapshot() -> None:
    tally = Tally()
    (found,) = parsed("1794725694.154,GPU-1,NVIDIA H200,97,0.21,57000000000,1\n", tally=tally)
    assert found == Snapshot(
        timestamp_ms=1_794_725_694_154,
        gpu_id="GPU-1",
        device="",
        hostname="here",
        model="NVIDIA H200",
        metrics={
            "DCGM_FI_DEV_GPU_UTIL": 97,
            "DCGM_FI_PROF_DRAM_ACTIVE": 0.21,
            "DCGM_FI_PROF_PCIE_TX_BYTES": 57_000_000_000,
        },
    )
    assert dict(tally.unknown) == {"DCGM_FI_MADE_UP": 1}


def test_cells_without_a_value_are_left_out_and_counted() -> None:
    tally = Tally()
    line = "2026-11-15T06:54:54.154Z,GPU-1,NVIDIA H200,,9223372036854775794,nan,\n"
    (found,) = parsed(line, tally=tally)
    assert isinstance(found, Snapshot)
    assert (found.timestamp_ms, dict(found.metrics)) == (1_794_725_694_154, {})
    assert tally.no_value == 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("yesterday,GPU-1,m,1,1,1,1", "timestamp 'yesterday' is neither seconds nor ISO 8601"),
        ("1,,m,1,1,1,1", "no uuid"),
        ("1,GPU-1,m,1", "4 cells, the header has 7"),
        ("1,GPU-1,m,much,1,1,1", "'much' is not a number for DCGM_FI_DEV_GPU_UTIL"),
        ("1,GPU-1,m,inf,1,1,1", "'inf' is not a number for DCGM_FI_DEV_GPU_UTIL"),
    ],
)
def test_a_bad_row_is_refused_and_the_next_is_read(line: str, reason: str) -> None:
    refusal, after = parsed(line, "1,GPU-1,m,1,1,1,1")
    assert refusal == Refusal(where="f line 2", reason=reason, raw=line.encode())
    assert isinstance(after, Snapshot)


def test_a_header_without_uuid_is_refused() -> None:
    with pytest.raises(HeaderError, match="has no uuid"):
        list(parse_rows([(1, "timestamp,DCGM_FI_DEV_GPU_UTIL\n")], where="f", hostname="",
                        tally=Tally()))  # fmt: skip


def test_headers_are_distinguished() -> None:
    assert is_header(HEADER)
    assert not is_header("timestamp,metric_name,uuid,value")
    assert not is_header("timestamp, uuid, utilization.gpu [%]")
