"""Tests nvidia-smi's CSV: the layouts of real drivers, and invalid lines."""

from zoneinfo import ZoneInfo

import pytest

from barnabas.telemetry.samples.nvidia_smi import HeaderError, parse_rows
from barnabas.telemetry.samples.readings import Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Snapshot

# As an H200 with driver 580 writes it; clocks_throttle_reasons was requested and is renamed.
LIVE = """\
timestamp, index, uuid, name, driver_version, pci.bus_id, utilization.gpu [%], memory.total [MiB], memory.used [MiB], power.draw.instant [W], power.draw [W], clocks_event_reasons.active, clocks_event_reasons.active, ecc.errors.corrected.volatile.total
2026/11/15 15:23:42.995, 0, GPU-bc3c, NVIDIA H200, 580.159.04, 00000000:00:06.0, 0 %, 143771 MiB, 12 MiB, 78.61 W, 80.00 W, 0x0000000000000001, 0x0000000000000001, 0
"""  # noqa: E501 - nvidia-smi's lines are long
HEADER = "timestamp, uuid, utilization.gpu [%], clocks_throttle_reasons.active, fan.speed [%]"


def read(text: str, tally: Tally | None = None, zone: str = "UTC") -> list[Snapshot | Refusal]:
    lines = enumerate(text.splitlines(), 1)
    found = parse_rows(
        lines, where="f.csv", hostname="node-1", zone=ZoneInfo(zone), tally=tally or Tally()
    )
    return list(found)


def test_a_row_with_units_in_its_cells() -> None:
    assert read(LIVE) == [
        Snapshot(
            timestamp_ms=1_794_756_222_995,
            gpu_id="GPU-bc3c",
            device="nvidia0",
            hostname="node-1",
            model="NVIDIA H200",
            labels={"driver_version": "580.159.04", "pci.bus_id": "00000000:00:06.0"},
            metrics={
                "DCGM_FI_DEV_GPU_UTIL": 0,
                "DCGM_FI_DEV_FB_TOTAL": 143771,
                "DCGM_FI_DEV_FB_USED": 12,
                "DCGM_FI_DEV_FB_FREE": 143759,
                "DCGM_FI_DEV_POWER_USAGE": 78.61,
                "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 1,
                "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": 0,
            },
        )
    ]


def test_flags_are_hexadecimal_and_missing_values_are_counted() -> None:
    tally = Tally()
    (found,) = read(f"{HEADER}\n2026/11/15 06:54:54.154, GPU-1, [N/A], 0x44, 30 %\n", tally)
    assert isinstance(found, Snapshot)
    assert found.metrics == {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x44}
    assert tally.no_value == 1
    assert dict(tally.unknown) == {"fan.speed": 1}


def test_times_are_those_of_the_zone() -> None:
    row = f"{HEADER}\n2026/11/15 06:54:54.154, GPU-1, 5, 0x0, 0"
    (utc,), (berlin,) = read(row), read(row, zone="Europe/Berlin")
    assert isinstance(utc, Snapshot)
    assert isinstance(berlin, Snapshot)
    assert utc.timestamp_ms - berlin.timestamp_ms == 3_600_000


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2026/11/15 06:54:54.154, GPU-1, 5", "3 cells, the header has 5"),
        ("2026/11/15 06:54:54.154, , 5, 0x0, 0", "no uuid"),
        ("yesterday, GPU-1, 5, 0x0, 0", "timestamp 'yesterday' is not of the form"),
        ("2026/11/15 06:54:54.154, GPU-1, high, 0x0, 0", "'high' is not a number"),
        ("2026/11/15 06:54:54.154, GPU-1, 5, 0xzz, 0", "'0xzz' is not a number"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(row: str, reason: str) -> None:
    good = "2026/11/15 06:54:54.154, GPU-1, 5, 0x0, 0"
    first, bad, last = read(f"{HEADER}\n{good}\n{row}\n\n{good}\n")
    assert isinstance(first, Snapshot)
    assert isinstance(last, Snapshot)
    assert isinstance(bad, Refusal)
    assert (bad.where, bad.raw) == ("f.csv line 3", row.encode())
    assert reason in bad.reason


def test_a_header_that_comes_again_is_passed_over() -> None:
    row = "2026/11/15 06:54:54.154, GPU-1, 5, 0x0, 0"
    assert len(read(f"{HEADER}\n{row}\n{HEADER}\n{row}\n")) == 2


def test_another_header_is_refused() -> None:
    with pytest.raises(HeaderError, match="no timestamp or no uuid"):
        read("a, b, c\n1, 2, 3\n")
