"""Tests that the check of a day of exporters notices outages that were not named, or wrongly."""

import pytest

pytest.importorskip("duckdb", reason="needs pip install 'barnabas[telemetry]'")

from tests.support.pipelines.exporter_day.checking import (
    BACK,
    GONE,
    REASONS,
    Outages,
    Verdict,
    check_outages,
)
from tests.support.pipelines.exporter_day.exporters import STRETCH, Behaviour, behaviour

HOSTS, TURNS = 6, 3 * STRETCH


def reported() -> Outages:
    """Return the outages of a collector that names all of them."""
    found = Outages()
    for host in range(HOSTS):
        for turn in range(TURNS):
            how = behaviour(host, turn)
            before = behaviour(host, turn - 1) if turn else Behaviour.GOOD
            if how is not Behaviour.GOOD:
                found.reasons[host, turn] = f"it is said: {REASONS[how][-1]}"
            if how is not Behaviour.GOOD and before is Behaviour.GOOD:
                found.told.append(f"node-{host} {GONE} (why); trying on")
            if how is Behaviour.GOOD and before is not Behaviour.GOOD:
                found.told.append(f"node-{host} {BACK}")
    return found


def wrong(outages: Outages) -> list[str]:
    verdict = Verdict()
    check_outages(verdict, outages, HOSTS, TURNS)
    return verdict.wrong


def test_outages_that_are_all_named_are_right() -> None:
    outages = reported()
    assert len(outages.reasons) == HOSTS * STRETCH
    assert wrong(outages) == []


def test_an_outage_that_is_not_named_is_noticed() -> None:
    outages = reported()
    place = next(iter(outages.reasons))
    del outages.reasons[place]
    assert wrong(outages) == [f"1 outages not named, such as [{place}]"]


def test_an_outage_that_was_none_is_noticed() -> None:
    outages = reported()
    place = next((1, turn) for turn in range(TURNS) if (1, turn) not in outages.reasons)
    outages.reasons[place] = "timed out"
    assert wrong(outages) == [f"1 outages that were none, such as [{place}]"]


def test_another_reason_is_noticed() -> None:
    outages = reported()
    place = next(iter(outages.reasons))
    outages.reasons[place] = "it is Tuesday"
    (found,) = wrong(outages)
    assert "1 outages with another reason" in found
    assert "it is Tuesday" in found


@pytest.mark.parametrize("word", [GONE, BACK])
def test_an_outage_that_the_operator_did_not_hear_of_is_noticed(word: str) -> None:
    outages = reported()
    outages.told.remove(next(line for line in outages.told if word in line))
    (found,) = wrong(outages)
    assert "outages and returns were told" in found
