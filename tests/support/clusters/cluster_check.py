"""Checks clients' ledgers against what a cluster stores, with pure functions.

    lost          an acknowledged record is not there, or not at the offset it was promised
    doubled       a record is there twice, acknowledged or not: producers are idempotent
    out of order  records of one producer stand in another order than they were sent in
    went back     a reader was given an offset that is not behind the one before it
    gone          a reader was shown a record that is not there now
    changed       a reader was shown another record at an offset than is there now
    skipped       a reader went past a record without being shown it
    aborted       a record of a transaction that was aborted was shown to a reader of committed ones
    torn          of a transaction, a part is there
    uncommitted   a group was told that an offset is committed, and later found an older one

What they cannot see: records that nobody acknowledged and nobody read; reads that were late but
right; whether a refused request had to be refused; compacted topics, of which only what they
are for is checked (groups and transactions), not every byte; and faults that nobody injected.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.clusters.cluster_ledger import LOW, SHIFT, Acks, Fate, Reading

SHOWN_MAX = 5
ABSENT = -1

Content = Mapping[int, Reading]
"""A topic as one reader was shown it, by partition."""
Problems = dict[str, list[object]]


class Transaction(NamedTuple):
    """A transaction as its producer knows it: numbers are dealt out to partitions in turn."""

    number: int
    first: int
    size: int
    outcome: str
    """committed, aborted, or unknown where the producer never heard."""


def check_log(acks: Mapping[int, Mapping[int, Acks]], content: Content) -> list[str]:
    """Return what is wrong with a topic, given what each producer was promised."""
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
        told += [f"partition {partition}: {line}" for line in _told(problems)]
    return told


def _places(reading: Reading, problems: Problems) -> dict[int, "array[int]"]:
    """Return the offset of each number of each producer, and note what stands wrong."""
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
    """Return where a reader was shown something else than is there now.

    Where `whole`, it was to see everything that `content` has, up to where it stopped.
    """
    told = []
    for partition, reading in sorted(shown.items()):
        problems: Problems = defaultdict(list)
        there = content.get(partition, Reading())
        _compare(reading, there, problems, whole=whole)
        told += [f"partition {partition}: {line}" for line in _told(problems)]
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
    """Return what is wrong with what a reader of committed records was shown in the end."""
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
    return list(_told(problems))


def check_shown_committed(shown: Content) -> list[str]:
    """Return what a reader of committed records must not have been shown."""
    problems: Problems = defaultdict(list)
    for _, reading in sorted(shown.items()):
        _note_aborted(reading, problems)
    return list(_told(problems))


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
    """Return the transactions that a producer's diary tells of."""
    found: dict[int, Transaction] = {}
    for line in diary:
        number = line.get("transaction", ABSENT)
        if line["event"] == "begun":
            found[number] = Transaction(number, line["first"], line["count"], "unknown")
        elif line["event"] in {"committed", "aborted"}:
            found[number] = found[number]._replace(outcome=line["event"])
    return list(found.values())


def check_commits(diaries: Iterable[Iterable[Mapping[str, Any]]]) -> list[str]:
    """Return where a group was given an older offset than the last it was told is committed.

    A look that began after a commit was acknowledged must find it, or a later one.
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
    return list(_told(problems))


def _begun_at(line: Mapping[str, Any]) -> int:
    begun: int = line.get("asked_us", line["at_us"])
    return begun


def _told(problems: Mapping[str, Sequence[object]]) -> Iterator[str]:
    for name, which in problems.items():
        if which:
            yield f"{len(which)} {name}: {list(which[:SHOWN_MAX])}"
