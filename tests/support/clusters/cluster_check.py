"""Checks clients' ledgers against what a cluster stores, with pure functions.

    lost          an acknowledged record is missing, or not at its acknowledged offset
    doubled       a record is there twice, acknowledged or not: producers are idempotent
    out of order  records of one producer are in another order than they were sent in
    went back     a reader got an offset that is not larger than the one before it
    gone          a reader got a record that is missing now
    changed       a reader got another record at an offset than is there now
    skipped       a reader skipped a record
    aborted       a read_committed reader got a record of an aborted transaction
    torn          only a part of a transaction is there
    uncommitted   a group found an older offset than the last one that was acknowledged as committed

The checks cannot detect: records that were neither acknowledged nor read; reads that were late but
right; whether a refused request had to be refused; damage to compacted topics whose purpose is not
affected (groups and transactions); and faults that were not injected.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.clusters.cluster_ledger import LOW, SHIFT, Acks, Fate, Reading

SHOWN_MAX = 5
ABSENT = -1

Content = Mapping[int, Reading]
"""The records of a topic that one reader got, by partition."""
Problems = dict[str, list[object]]


class Transaction(NamedTuple):
    """A transaction as its producer knows it. Its numbers are distributed over the partitions in
    turn.
    """

    number: int
    first: int
    size: int
    outcome: str
    """committed, aborted, or unknown if the producer got no response."""


def check_log(acks: Mapping[int, Mapping[int, Acks]], content: Content) -> list[str]:
    """Return the problems of a topic, given what each producer got acknowledged."""
    told = []
    promised: dict[int, dict[int, Acks]] = defaultdict(dict)
    for producer, partitions in acks.items():
        for partition, found in partitions.items():
            promised[partition][producer] = found
    for partition in sorted({*promised, *content}):
        problems: Problems = defaultdict(list)
        reading = content.get(partition, Reading())
        places = _places(reading, problems)
        for producer, found in promised[partition].items():
            _find_lost(producer, found, places.get(producer, array("q")), problems)
        told += [f"partition {partition}: {line}" for line in _described(problems)]
    return told


def _places(reading: Reading, problems: Problems) -> dict[int, "array[int]"]:
    """Return the offset of each number of each producer, and record misplaced ones."""
    places: dict[int, array[int]] = {}
    before = ABSENT
    for offset, who in zip(reading.offsets, reading.senders, strict=True):
        producer, number = who >> SHIFT, who & LOW
        if offset <= before:
            problems["went back"].append((before, offset))
        before = offset
        known = places.get(producer)
        if known is None:
            known = places[producer] = array("q")
        if number >= len(known):
            known.extend([ABSENT] * (number + 1 - len(known)))
        elif known[number] != ABSENT:
            problems["doubled"].append((producer, number))
            continue
        else:
            problems["out of order"].append((producer, number))
        known[number] = offset
    return places


def _find_lost(producer: int, acks: Acks, known: "array[int]", problems: Problems) -> None:
    size = len(known)
    for number, offset in zip(acks.numbers, acks.offsets, strict=True):
        if number >= size or known[number] != offset:
            there = known[number] if number < size else ABSENT
            problems["lost"].append((producer, number, offset, there))


def check_reader(shown: Content, content: Content, *, whole: bool = True) -> list[str]:
    """Return the offsets at which a reader got something else than is there now.

    If `whole`, the reader must have all of `content` up to its last offset.
    """
    told = []
    for partition, reading in sorted(shown.items()):
        problems: Problems = defaultdict(list)
        there = content.get(partition, Reading())
        _compare(reading, there, problems, whole=whole)
        told += [f"partition {partition}: {line}" for line in _described(problems)]
    return told


def _compare(shown: Reading, there: Reading, problems: Problems, *, whole: bool) -> None:
    position, before = 0, ABSENT
    for offset, who in zip(shown.offsets, shown.senders, strict=True):
        if offset <= before:
            problems["went back"].append((before, offset))
            continue
        before = offset
        while position < len(there.offsets) and there.offsets[position] < offset:
            if whole:
                problems["skipped"].append(there.offsets[position])
            position += 1
        if position == len(there.offsets) or there.offsets[position] != offset:
            problems["gone"].append((offset, who >> SHIFT, who & LOW))
            continue
        if there.senders[position] != who:
            problems["changed"].append((offset, who >> SHIFT, who & LOW))
        position += 1


def check_transactions(
    ledgers: Mapping[int, Sequence[Transaction]], committed: Content, partitions: int
) -> list[str]:
    """Return the problems of what a read_committed reader got in the end."""
    problems: Problems = defaultdict(list)
    shown: dict[int, set[int]] = defaultdict(set)
    for partition, reading in committed.items():
        _note_aborted(reading, problems)
        for who in reading.senders:
            if (who & LOW) % partitions == partition:
                shown[who >> SHIFT].add(who & LOW)
    for producer, transactions in ledgers.items():
        for each in transactions:
            there = sum(
                number in shown[producer] for number in range(each.first, each.first + each.size)
            )
            if kind := _ending_problem(each, there):
                problems[kind].append((producer, each.number, f"{there} of {each.size}"))
    return list(_described(problems))


def check_shown_committed(shown: Content) -> list[str]:
    """Return what a read_committed reader must not have got."""
    problems: Problems = defaultdict(list)
    for _, reading in sorted(shown.items()):
        _note_aborted(reading, problems)
    return list(_described(problems))


def _note_aborted(reading: Reading, problems: Problems) -> None:
    for who, transaction in zip(reading.senders, reading.transactions, strict=True):
        if transaction & 255 == Fate.ABORT:
            problems["aborted"].append((who >> SHIFT, who & LOW))


def _ending_problem(transaction: Transaction, there: int) -> str:
    if transaction.outcome == "committed":
        return "" if there == transaction.size else "lost"
    if transaction.outcome == "aborted":
        return "aborted" if there else ""
    return "torn" if 0 < there < transaction.size else ""


def transactions_of(diary: Iterable[Mapping[str, Any]]) -> list[Transaction]:
    """Return the transactions in a producer's diary."""
    found: dict[int, Transaction] = {}
    for line in diary:
        number = line.get("transaction", ABSENT)
        if line["event"] == "begun":
            found[number] = Transaction(number, line["first"], line["count"], "unknown")
        elif line["event"] in {"committed", "aborted"}:
            found[number] = found[number]._replace(outcome=line["event"])
    return list(found.values())


def check_commits(diaries: Iterable[Iterable[Mapping[str, Any]]]) -> list[str]:
    """Return where a group found an older offset than the last acknowledged commit.

    A fetch that began after a commit was acknowledged must find it, or a later one.
    """
    lines = sorted((line for diary in diaries for line in diary), key=_begun_at)
    commits: list[tuple[int, int, int]] = sorted(
        (line["at_us"], line["partition"], line["offset"])
        for line in lines
        if line["event"] == "committed"
    )
    problems: Problems = defaultdict(list)
    highest: dict[int, int] = {}
    position = 0
    for line in lines:
        if line["event"] != "found":
            continue
        while position < len(commits) and commits[position][0] < line["asked_us"]:
            _, partition, offset = commits[position]
            highest[partition] = max(offset, highest.get(partition, ABSENT))
            position += 1
        known = highest.get(line["partition"])
        if known is not None and line["offset"] < known:
            problems["uncommitted"].append((line["partition"], known, line["offset"]))
    return list(_described(problems))


def _begun_at(line: Mapping[str, Any]) -> int:
    begun: int = line.get("asked_us", line["at_us"])
    return begun


def _described(problems: Mapping[str, Sequence[object]]) -> Iterator[str]:
    for name, which in problems.items():
        if which:
            yield f"{len(which)} {name}: {list(which[:SHOWN_MAX])}"
