"""Tests that many alerts become few: flapping findings, and one finding on all cards."""

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs pip install 'barnabas[spark]'")

from barnabas.telemetry.findings.alerts import Alert
from barnabas.telemetry.findings.assessment import Assessment, FleetState, assess
from barnabas.telemetry.findings.assessment_store import StateStore
from barnabas.telemetry.findings.finding import Finding, Window, us
from barnabas.telemetry.findings.gpu_history import report
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake.lake import Lake
from barnabas.telemetry.samples.catalogue import Name

THRESHOLDS = Thresholds()
HOUR = 360
"""Windows of ten seconds."""


def window(number: int, gpu: str, host: str = "node-1", namespace: str = "ml") -> Window:
    return Window(us(number * 10), us(number * 10 + 10), gpu, host, "H200", namespace)


def parked(at: Window) -> Finding:
    return report(at, Name.PARKED_MEMORY, 5000.0, "5,000 MiB held while idle")


def is_idle(number: int, shift: int = 0) -> bool:
    """Return whether a load of 40 s busy, 40 s idle is in its idle part."""
    return (number + shift) % 8 >= 4


def storm(gpus: int, windows: int, shift: int = 0) -> Assessment:
    """Play a load that starts and stops; `shift` is the number of windows between cards."""
    rows = [window(number, f"GPU-{gpu}") for number in range(windows) for gpu in range(gpus)]
    found = [
        parked(row)
        for row in rows
        if is_idle(row.window_start // us(10), shift * int(row.gpu_id.removeprefix("GPU-")))
    ]
    return assess(FleetState(), rows, found, THRESHOLDS)


def test_a_load_that_starts_and_stops_is_a_few_messages_an_hour() -> None:
    told = storm(4, HOUR).alerts
    states = [each.state for each in told]
    assert states[:5] == ["raised", "cleared", "raised", "cleared", "flapping"]
    assert set(states[5:]) == {"still"}
    assert len(told) <= 7


def test_cards_that_flap_one_after_the_other_are_few_messages_too() -> None:
    assert len(storm(4, HOUR, shift=2).alerts) <= 20


def test_a_flapping_alert_clears_after_a_calm_time_and_is_raised_again() -> None:
    hot = [number for number in range(60) if is_idle(number)]
    later = [*range(200, 206)]
    rows = [window(number, "GPU-1") for number in range(210)]
    found = [parked(rows[number]) for number in [*hot, *later]]
    told = assess(FleetState(), rows, found, THRESHOLDS).alerts
    assert [each.state for each in told] == [
        *("raised", "cleared") * 2,
        "flapping",
        "cleared",
        "raised",
        "cleared",
    ]
    flapping, calm = told[4:6]
    assert flapping.alert_id == calm.alert_id
    assert "flapping: raised 3 times" in flapping.message
    assert told[6].alert_id != flapping.alert_id


def test_two_raises_an_hour_apart_do_not_flap() -> None:
    rows = [window(number, "GPU-1") for number in range(3 * HOUR)]
    found = [parked(rows[start + n]) for start in (0, HOUR, 2 * HOUR) for n in range(3)]
    told = assess(FleetState(), rows, found, THRESHOLDS).alerts
    assert [each.state for each in told] == ["raised", "cleared"] * 3


def of_node(
    cards: dict[str, range], windows: int, hosts: dict[str, str] | None = None
) -> list[Alert]:
    """Return the alerts if each card has the finding in a range of windows."""
    rows = [
        window(n, gpu, (hosts or {}).get(gpu, "node-1")) for n in range(windows) for gpu in cards
    ]
    found = [parked(row) for row in rows if row.window_start // us(10) in cards[row.gpu_id]]
    return assess(FleetState(), rows, found, THRESHOLDS).alerts


def test_eight_cards_of_a_node_are_one_message_that_lists_them() -> None:
    cards = {f"GPU-{n}": range(10) for n in range(8)}
    raised, cleared = of_node(cards, 20)
    assert raised.gpus == cleared.gpus == tuple(sorted(cards))
    assert raised.message.startswith("8 GPUs on node-1: 5,000 MiB held while idle; GPU-0, GPU-1")
    assert (raised.state, cleared.state) == ("raised", "cleared")
    assert raised.alert_id == cleared.alert_id


def test_cards_of_two_nodes_are_two_messages() -> None:
    hosts = {"GPU-1": "node-1", "GPU-2": "node-2"}
    told = of_node(dict.fromkeys(hosts, range(10)), 10, hosts)
    assert [(each.hostname, each.gpus) for each in told] == [
        ("node-1", ("GPU-1",)),
        ("node-2", ("GPU-2",)),
    ]


def test_cards_that_follow_are_alerted_together_and_the_last_one_clears() -> None:
    cards = {"GPU-0": range(40), "GPU-1": range(1, 20), "GPU-2": range(3, 50)}
    told = of_node(cards, 60)
    assert [(each.state, each.gpus) for each in told] == [
        ("raised", ("GPU-0",)),
        ("raised", ("GPU-0", "GPU-1", "GPU-2")),
        ("cleared", ("GPU-0", "GPU-1", "GPU-2")),
    ]
    assert len({each.alert_id for each in told}) == 1


def test_xids_of_one_code_are_alerted_together_and_another_code_at_once() -> None:
    codes = {"GPU-1": [79], "GPU-2": [79], "GPU-3": [48]}
    rows = [
        window(number, gpu)._replace(xids=[] if number == 0 else found)
        for number in range(2)
        for gpu, found in codes.items()
    ]
    rows += [window(2, gpu)._replace(xids=[95 if gpu == "GPU-2" else 79]) for gpu in codes]
    told = assess(FleetState(), rows, [], THRESHOLDS).alerts
    xids = [(each.state, each.value, each.gpus) for each in told if each.finding == "xid"]
    assert xids == [
        ("raised", 79, ("GPU-1", "GPU-2")),
        ("raised", 48, ("GPU-3",)),
        ("still", 95, ("GPU-1", "GPU-2")),
        ("still", 79, ("GPU-3",)),
    ]


def test_a_restart_in_the_middle_of_a_storm_changes_nothing(tmp_path: Path) -> None:
    rows = [window(number, f"GPU-{gpu}") for number in range(120) for gpu in range(4)]
    found = [parked(row) for row in rows if is_idle(row.window_start // us(10))]
    whole = assess(FleetState(), rows, found, THRESHOLDS)
    told: list[Alert] = []
    for batch_id in range(12):
        part = range(us(batch_id * 100), us(batch_id * 100 + 100))
        state = StateStore(Lake(str(tmp_path))).after(batch_id - 1)
        batch = assess(
            state,
            [row for row in rows if row.window_start in part],
            [each for each in found if each.window_start in part],
            THRESHOLDS,
        )
        StateStore(Lake(str(tmp_path))).save(batch_id, batch.state)
        told += batch.alerts
    assert told == whole.alerts
    assert StateStore(Lake(str(tmp_path))).after(11) == whole.state
