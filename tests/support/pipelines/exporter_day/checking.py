"""Checks the tables after the day against values computed from the card numbers."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tests.support.pipelines.exporter_day.exporters import (
    BAD,
    CARDS_A_HOST,
    Behaviour,
    behaviour,
    hostname,
    is_idle,
    uuid,
    values,
)

HOURS_BOUND = 0.05
"""How far covered and idle hours may be off, as a share.

Every outage costs its card the rest of an interval, and gives up to two intervals back.
"""


REASONS: dict[Behaviour, tuple[str, ...]] = {
    Behaviour.HANG: ("no complete response within",),
    Behaviour.TRICKLE: ("no complete response within",),
    Behaviour.TRUNCATE: ("cut short",),
    Behaviour.FAIL: ("answered 500",),
    Behaviour.EMPTY: ("empty page",),
    Behaviour.FOREIGN: ("without metrics of DCGM",),
    Behaviour.RESET: ("reset", "closed"),
}
"""What the collector has to say about each behaviour: one of these."""
GONE, BACK = "does not answer", "answers again"
SHOWN = 5


@dataclass
class Outages:
    """What the collector reported about exporters."""

    reasons: dict[tuple[int, int], str] = field(default_factory=dict)
    """The reason of every scrape that gave no page, by host and round."""
    told: list[str] = field(default_factory=list)
    """The lines for the operator."""


@dataclass
class Verdict:
    """The results; there are no problems if `wrong` is empty."""

    facts: dict[str, object] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def check(
    lake: Path, hosts: int, turns: int, interval_s: int, skewed: set[int], outages: Outages
) -> Verdict:
    """Compare silver and gold with the expected values, and reported outages with actual ones."""
    verdict = Verdict()
    good = {
        host: sum(behaviour(host, turn) is Behaviour.GOOD for turn in range(turns))
        for host in range(hosts)
    }
    _silver(verdict, lake, good, skewed)
    _gold(verdict, lake, good, skewed, interval_s)
    _skew(verdict, lake, skewed)
    check_outages(verdict, outages, hosts, turns)
    return verdict


def check_outages(verdict: Verdict, outages: Outages, hosts: int, turns: int) -> None:
    """Compare each scrape that failed with what its exporter did, and the lines with outages."""
    acts = {(host, turn): behaviour(host, turn) for host in range(hosts) for turn in range(turns)}
    bad = {place: how for place, how in acts.items() if how is not Behaviour.GOOD}
    missing = sorted(bad.keys() - outages.reasons.keys())
    foreign = sorted(outages.reasons.keys() - bad.keys())
    other = [
        f"{hostname(place[0])} in round {place[1]} ({how}): {outages.reasons[place]}"
        for place, how in bad.items()
        if place in outages.reasons
        and not any(text in outages.reasons[place] for text in REASONS[how])
    ]
    begun = sum(acts.get((host, turn - 1)) not in BAD for host, turn in bad)
    ended = sum((host, turn + 1) in acts.keys() - bad.keys() for host, turn in bad)
    told = [sum(word in line for line in outages.told) for word in (GONE, BACK)]
    verdict.facts |= {"bad scrapes": len(bad), "outages told": told[0], "returns told": told[1]}
    for what, found in (
        ("outages not named", missing),
        ("outages that were none", foreign),
        ("outages with another reason", other),
    ):
        if found:
            verdict.wrong.append(f"{len(found)} {what}, such as {found[:SHOWN]}")
    if told != [begun, ended]:
        verdict.wrong.append(f"{told} outages and returns were told of {[begun, ended]}")


def _silver(verdict: Verdict, lake: Path, good: dict[int, int], skewed: set[int]) -> None:
    rows = duckdb.sql(
        f"select gpu_id, gpu_util, power_usage, gpu_temp, count(*) "
        f"from read_parquet('{lake}/silver/*.parquet') where gpu_id is not null group by all"
    ).fetchall()
    counted: Counter[str] = Counter()
    truth = {uuid(card): values(card) for host in good for card in range(host * 8, host * 8 + 8)}
    for gpu_id, util, power, temperature, count in rows:
        counted[gpu_id] += count
        expected = truth.get(gpu_id)
        if expected is None or any(
            abs(got - want) > 1e-6
            for got, want in zip((util, power, temperature), expected, strict=True)
        ):
            verdict.wrong.append(f"silver has {gpu_id} with {util}, {power}, {temperature}")
    for host, rounds in good.items():
        cards = [uuid(card) for card in range(host * CARDS_A_HOST, (host + 1) * CARDS_A_HOST)]
        if host not in skewed and any(counted[card] != rounds for card in cards):
            verdict.wrong.append(f"{hostname(host)}: {counted[cards[0]]} rows of {rounds}")
    verdict.facts["rows of silver"] = sum(counted.values())


def _gold(
    verdict: Verdict, lake: Path, good: dict[int, int], skewed: set[int], interval_s: int
) -> None:
    rows = duckdb.sql(
        "select gpu_id, sum(covered_seconds), sum(energy_joules), "
        f"from read_parquet('{lake}/gold_10s/*.parquet', union_by_name=true) "
        "where level = 'gpu' group by gpu_id"
    ).fetchall()
    covered = {gpu_id: (seconds, joules) for gpu_id, seconds, joules in rows}
    total_s = wanted_s = worst = 0.0
    for host in good.keys() - skewed:
        for card in range(host * CARDS_A_HOST, (host + 1) * CARDS_A_HOST):
            seconds, joules = covered.get(uuid(card), (0.0, 0.0))
            power = values(card)[1]
            if seconds and abs(joules / seconds - power) > 0.01 * power:
                verdict.wrong.append(f"{uuid(card)}: {joules / seconds:.1f} W, not {power:.1f}")
            total_s += seconds
            wanted_s += good[host] * interval_s
            worst = max(worst, abs(seconds / (good[host] * interval_s) - 1))
    verdict.facts |= {
        "hours covered": round(total_s / 3600, 1),
        "hours of good pages": round(wanted_s / 3600, 1),
        "card furthest off": round(worst, 3),
    }
    if abs(total_s / wanted_s - 1) > HOURS_BOUND:
        verdict.wrong.append(f"{total_s / 3600:.1f} hours are covered, not {wanted_s / 3600:.1f}")
    _findings(verdict, lake, good, skewed)


def _findings(verdict: Verdict, lake: Path, good: dict[int, int], skewed: set[int]) -> None:
    idle_s = dict(
        duckdb.sql(
            "select gpu_id, sum(seconds) "
            f"from read_parquet('{lake}/findings/*.parquet', union_by_name=true) "
            "where finding = 'idle' group by gpu_id"
        ).fetchall()
    )
    cards = [
        card
        for host in good.keys() - skewed
        for card in range(host * CARDS_A_HOST, (host + 1) * CARDS_A_HOST)
    ]
    wrong = [card for card in cards if (uuid(card) in idle_s) != is_idle(card)]
    verdict.facts["idle cards found"] = sum(uuid(card) in idle_s for card in cards)
    verdict.facts["idle hours"] = round(sum(idle_s.values()) / 3600, 1)
    if wrong:
        verdict.wrong.append(f"idle is wrong for {len(wrong)} cards, such as {uuid(wrong[0])}")


def _skew(verdict: Verdict, lake: Path, skewed: set[int]) -> None:
    found = {
        name
        for (name,) in duckdb.sql(
            "select distinct hostname "
            f"from read_parquet('{lake}/findings/*.parquet', union_by_name=true) "
            "where finding = 'clock_skew'"
        ).fetchall()
    }
    verdict.facts["hosts with a wrong clock"] = sorted(found)
    if found != {hostname(host) for host in skewed}:
        verdict.wrong.append(f"wrong clocks are {sorted(skewed)}, found {sorted(found)}")
