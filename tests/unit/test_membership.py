"""Tests that the checker of members' logs finds every violation, and nothing else."""

from pathlib import Path

import pytest

from tests.support.members.membership import Findings, examine
from tests.support.members.membership_log import Kind, Line, LogReader, MemberLog, parse

ACKNOWLEDGED = {0: {0: 100, 1: 101, 2: 102, 3: 103}}


def lines(*texts: str) -> list[Line]:
    return [parse(text) for text in texts]


def found(acknowledged: dict[int, dict[int, int]] | None = None, **logs: list[str]) -> Findings:
    parsed = {name: lines(*texts) for name, texts in logs.items()}
    return examine(parsed, ACKNOWLEDGED if acknowledged is None else acknowledged)


FIRST_HALF = [
    "10 joined a",
    "20 assigned 1 0",
    "30 processed 0 0 100",
    "40 processed 0 1 101",
    "60 committed 50 0:2",
    "70 revoked 0",
]
SECOND_HALF = [
    "15 joined b",
    "80 assigned 2 0",
    "90 processed 0 2 102",
    "100 processed 0 3 103",
    "120 committed 110 0:4",
    "130 revoked 0",
    "140 left",
]
ALL_AGAIN = [f"9{n} processed 0 {n} {100 + n}" for n in range(4)]


def test_a_partition_that_is_handed_over_is_in_order() -> None:
    findings = found(a=FIRST_HALF, b=SECOND_HALF)
    assert findings.violations == []
    assert findings.figures() == {
        "processed": 4,
        "distinct": 4,
        "commits": 2,
        "tenures": 2,
        "generations": 2,
        "lost": 0,
        "unproven": 0,
    }


def test_a_record_may_be_processed_again_while_its_commit_is_not_confirmed() -> None:
    again = ["80 assigned 2 0", *ALL_AGAIN]
    assert found(a=FIRST_HALF[:4], b=again).violations == []


def planted(rule: str, *cases: str) -> str:
    return f"partition 0: {len(cases)} {rule}: {', '.join(cases)}"


@pytest.mark.parametrize(
    ("first", "second", "violations"),
    [
        pytest.param(
            FIRST_HALF, [*SECOND_HALF[:3], *SECOND_HALF[4:]], [planted("missed", "3")], id="missed"
        ),
        pytest.param(
            FIRST_HALF,
            ["80 assigned 2 0", *ALL_AGAIN, "120 committed 110 0:4"],
            [planted("repeated", "0 by b@2", "1 by b@2")],
            id="repeated",
        ),
        pytest.param(
            FIRST_HALF,
            ["65 assigned 2 0", *SECOND_HALF[2:]],
            [planted("overlapping", "a@1 and b@2 for 0.000 ms")],
            id="overlapping",
        ),
        pytest.param(
            FIRST_HALF,
            ["80 assigned 1 0", *SECOND_HALF[2:]],
            [planted("shared", "generation 1 by ['a', 'b']")],
            id="shared",
        ),
        pytest.param(
            FIRST_HALF,
            [*SECOND_HALF[:2], "90 processed 0 3 103", "100 processed 0 2 102"],
            [planted("disordered", "2 after 3 by b@2")],
            id="disordered",
        ),
        pytest.param(
            FIRST_HALF,
            [*SECOND_HALF[:2], "90 processed 0 3 103"],
            [planted("missed", "2")],
            id="skipped by the next owner",
        ),
        pytest.param(
            FIRST_HALF,
            [*SECOND_HALF[:3], "100 processed 0 3 999"],
            [planted("strange", "999 at 3, not 103")],
            id="strange",
        ),
        pytest.param(
            [*FIRST_HALF, "75 processed 0 2 102"],
            SECOND_HALF,
            ["a: 1 unowned: [(0, 2)]"],
            id="unowned",
        ),
        pytest.param(
            [*FIRST_HALF, "75 failed KafkaError: no"],
            SECOND_HALF,
            ["a: 1 failed: ['KafkaError: no']"],
            id="failed",
        ),
    ],
)
def test_violations_are_found(first: list[str], second: list[str], violations: list[str]) -> None:
    assert found(a=first, b=second).violations == violations


def test_a_member_that_was_killed_owned_its_partition_until_its_last_commit_was_sent() -> None:
    killed = FIRST_HALF[:-1]
    late = ["55 assigned 2 0", *SECOND_HALF[2:]]
    early = ["45 assigned 2 0", *SECOND_HALF[2:]]
    assert found(a=killed, b=late).violations == []
    assert found(a=killed, b=early).violations == [
        planted("overlapping", "a@1 and b@2 for 0.000 ms")
    ]


def test_what_a_lost_member_processed_after_its_last_commit_proves_nothing() -> None:
    stranger = [*FIRST_HALF[:-1], "200 processed 0 2 102", "210 lost 0"]
    findings = found(a=stranger, b=SECOND_HALF)
    assert findings.violations == []
    assert (findings.unproven, findings.lost) == (1, 1)


def test_a_tenure_without_a_commit_proves_nothing() -> None:
    assert found(a=["85 assigned 9 0", "95 lost 0"], b=SECOND_HALF, c=FIRST_HALF).violations == []


def test_three_owners_are_compared_with_the_one_that_stays_longest() -> None:
    long = ["10 assigned 1 0", "300 revoked 0"]
    short = ["20 assigned 2 0", "30 revoked 0"]
    late = ["200 assigned 3 0", "400 revoked 0"]
    (violation,) = found({}, a=long, b=short, c=late).violations
    assert violation.startswith("partition 0: 2 overlapping: a@1 and b@2 for")
    assert "a@1 and c@3" in violation


def test_a_static_member_may_return_into_its_generation() -> None:
    before = ["10 joined static", *FIRST_HALF[1:-1]]
    after = ["75 joined static", "80 assigned 1 0", *SECOND_HALF[2:]]
    assert found(life1=before, life2=after).violations == []


def test_partitions_held_on_to_may_be_named_again() -> None:
    kept = [*FIRST_HALF[:-1], "80 assigned 2 0,1", "90 processed 0 2 102", "95 processed 0 3 103"]
    assert found(a=kept).violations == []


def test_clients_without_a_generation_are_not_checked_for_it() -> None:
    unknown = [text.replace("assigned 1 ", "assigned - ") for text in FIRST_HALF]
    after = [text.replace("assigned 2 ", "assigned - ") for text in SECOND_HALF]
    findings = found(a=unknown, b=after)
    assert (findings.violations, findings.generations) == ([], 0)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    log = MemberLog(tmp_path / "m.log")
    log.joined("m")
    log.assigned([2, 1], 7)
    log.assigned([])
    log.processed(1, 5, 17)
    log.committed(99, {1: 6, 2: 0})
    log.refused(98, "CommitFailedError")
    log.revoked([1])
    log.lost([2])
    log.failed("two\nlines")
    log.left()
    read = [line._replace(at=0) for line in LogReader(tmp_path / "m.log").refresh()]
    assert read == [
        Line(0, Kind.JOINED, "m"),
        Line(0, Kind.ASSIGNED, "7", partitions=(1, 2)),
        Line(0, Kind.ASSIGNED, "-"),
        Line(0, Kind.PROCESSED, offsets=((1, 5),), number=17),
        Line(0, Kind.COMMITTED, sent=99, offsets=((1, 6), (2, 0))),
        Line(0, Kind.REFUSED, "CommitFailedError", sent=98),
        Line(0, Kind.REVOKED, partitions=(1,)),
        Line(0, Kind.LOST, partitions=(2,)),
        Line(0, Kind.FAILED, "two lines"),
        Line(0, Kind.LEFT),
    ]


def test_a_line_that_is_not_yet_whole_waits(tmp_path: Path) -> None:
    path = tmp_path / "m.log"
    reader = LogReader(path)
    assert reader.refresh() == []
    path.write_text("1 left\n2 le")
    assert reader.refresh() == [Line(1, Kind.LEFT)]
    path.write_text("1 left\n2 left\n")
    assert reader.refresh() == [Line(2, Kind.LEFT)]
    assert len(reader.lines) == 2
