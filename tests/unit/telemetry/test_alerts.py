"""Tests the alert machine: raised, unchanged, cleared; one alert per GPU and finding; replays
agree.
"""

from collections import defaultdict
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from barnabas.telemetry.findings.alerts import Alert, Key, Standing, step
from barnabas.telemetry.findings.finding import Finding, us
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.samples.catalogue import CATALOGUE, Name

THRESHOLDS = Thresholds()


def finding(
    number: int, name: str, severity: str | None = None, value: float = 1.0, gpu: str = "GPU-1"
) -> Finding:
    entry = CATALOGUE[Name(name)]
    return Finding(
        us(number * 10),
        us(number * 10 + 10),
        gpu,
        "node-1",
        "H200",
        "ml",
        name,
        severity or entry.severity.value,
        value,
        entry.unit,
        10.0,
        None,
        f"{name} {value}",
    )


def at(seen: int, _: str) -> int:
    return seen


def play(windows: list[list[Finding]]) -> list[list[Alert]]:
    """Return the alerts of each window; the card reports in every one."""
    standing: dict[Key, Standing] = {}
    told = []
    for number, findings in enumerate(windows):
        standing, alerts = step(standing, findings, partial(at, us(number * 10 + 10)), THRESHOLDS)
        told.append(alerts)
    return told


def states(windows: list[list[Finding]]) -> list[list[str]]:
    return [[alert.state for alert in alerts] for alerts in play(windows)]


def lasting(name: str, windows: int, **details: object) -> list[list[Finding]]:
    return [[finding(number, name, **details)] for number in range(windows)]  # type: ignore[arg-type]


def test_a_critical_finding_is_raised_at_once_and_cleared_after_a_while() -> None:
    windows = [*lasting("ecc_trend", 1, severity="critical"), [], [], [], []]
    assert states(windows) == [["raised"], [], [], ["cleared"], []]


def test_a_warning_must_last_two_windows() -> None:
    assert states(lasting("starved", 3)) == [[], ["raised"], []]
    assert states([*lasting("starved", 1), [], [], [], []]) == [[], [], [], [], []]


def test_waste_must_last_minutes() -> None:
    told = states(lasting("idle", 40))
    assert told.index(["raised"]) == 29
    assert sum(map(len, told)) == 1


def test_a_standing_alert_is_repeated_every_ten_minutes() -> None:
    told = states(lasting("thermal_throttled", 130))
    assert [number for number, each in enumerate(told) if each] == [1, 61, 121]
    assert told[61] == ["still"]


def test_flapping_is_one_alert() -> None:
    windows = [[finding(number, "starved")] if number % 3 == 0 else [] for number in range(60)] + [
        []
    ] * 5
    flat = [state for each in states(windows) for state in each]
    assert flat == ["raised", "cleared"]


def test_the_id_lasts_from_raised_to_cleared_and_is_new_the_next_time() -> None:
    once = [*lasting("missing", 3), [], [], [], []]
    again = [[finding(7 + number, "missing")] for number in range(3)]
    alerts = [alert for each in play([*once, *again]) for alert in each]
    assert [each.state for each in alerts] == ["raised", "cleared", "raised"]
    assert alerts[0].alert_id == alerts[1].alert_id != alerts[2].alert_id


def test_an_xid_that_asks_for_a_drain_is_raised_at_once_and_stands_for_an_hour() -> None:
    windows = [[finding(0, "xid", "critical", 79.0)], *([[]] * 361)]
    told = states(windows)
    assert told[0] == ["raised"]
    assert told[360] == ["cleared"]
    assert [each for each in told[1:360] if each] == [["still"]] * 5


def test_an_alert_carries_what_to_do() -> None:
    ((alert,),) = play([[finding(0, "xid", "critical", 79.0)]])
    assert "power-cycle" in alert.action
    assert alert.message == "GPU-1 on node-1: xid 79.0"


def test_an_xid_of_the_job_never_alerts() -> None:
    assert states([[finding(0, "xid", "info", 13.0)], [], []]) == [[], [], []]


def test_a_graver_finding_is_sent_at_once_under_the_same_id() -> None:
    windows = [
        [finding(0, "xid", "warning", 9999.0)],
        [finding(1, "xid", "critical", 79.0)],
        [finding(2, "xid", "warning", 9999.0)],
        [finding(3, "xid", "critical", 48.0)],
    ]
    first, second, third, fourth = play(windows)
    assert [each.state for each in (*first, *second, *fourth)] == ["raised", "raised", "still"]
    assert third == []
    assert first[0].alert_id == second[0].alert_id == fourth[0].alert_id
    assert second[0].severity == "critical"


def test_of_two_xids_in_a_window_the_gravest_is_reported() -> None:
    both = [finding(0, "xid", "critical", 79.0), finding(0, "xid", "warning", 9999.0)]
    ((alert,),) = play([both])
    assert alert.value == 79.0


def test_a_card_that_stops_reporting_clears_nothing() -> None:
    hot = finding(0, "thermal_throttled", "critical")
    standing, alerts = step({}, [hot], lambda _: us(10), THRESHOLDS)
    assert [each.state for each in alerts] == ["raised"]
    for _ in range(100):
        standing, alerts = step(standing, [], lambda _: us(10), THRESHOLDS)
        assert alerts == []


def test_a_forgotten_card_clears_its_alerts() -> None:
    standing, _ = step({}, [finding(0, "missing")], lambda _: 0, THRESHOLDS)
    standing, _ = step(standing, [finding(1, "missing")], lambda _: 0, THRESHOLDS)
    standing, alerts = step(standing, [], lambda _: None, THRESHOLDS)
    assert [each.state for each in alerts] == ["cleared"]
    assert standing == {}


histories = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["starved", "missing", "xid", "idle", "ecc_trend"]),
            st.sampled_from(["GPU-1", "GPU-2"]),
            st.sampled_from(["info", "warning", "critical"]),
            st.sampled_from([13.0, 79.0]),
        ),
        max_size=4,
    ),
    max_size=80,
)


@given(histories)
def test_every_alert_is_raised_first_cleared_last_and_never_floods(
    history: list[list[tuple[str, str, str, float]]],
) -> None:
    windows = [
        [finding(number, name, severity, value, gpu) for name, gpu, severity, value in each]
        for number, each in enumerate(history)
    ]
    told = play(windows)
    assert told == play(windows)
    lives: defaultdict[str, list[Alert]] = defaultdict(list)
    for alerts in told:
        assert len({(each.gpu_id, each.finding) for each in alerts}) == len(alerts)
        for alert in alerts:
            lives[alert.alert_id].append(alert)
    for life in lives.values():
        assert life[0].state in ("raised", "flapping")
        assert all(each.state != "cleared" for each in life[:-1])
        assert [each.last_seen for each in life] == sorted(each.last_seen for each in life)
        severities = [each.severity for each in life if each.state == "raised"]
        assert len(severities) == len(set(severities)), "raised twice at the same severity"
