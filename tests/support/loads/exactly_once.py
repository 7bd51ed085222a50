"""The rules of exactly-once processing, as pure functions over the records that were read.

Two kinds of work are checked. A loop makes one output record of each input record, in the same
partition, and `violations` holds what was read against what was sent:

    lost          a record is missing
    doubled       a record is there twice
    out of order  a record stands behind one that was sent after it
    aborted       a record of a transaction that was aborted was shown
    unknown       a record that nobody can have made
    went back     a reader was given an offset that is not behind the one before it

A count in windows writes each new count, so that the updates of a window are 1, 2, 3 and so on to
the number of its records. `count_violations` finds where they are not:

    lost          the last update is less than the number of records, or there is none
    too many      the last update is more than that
    gap           an update counts more than one record: some other was lost
    repeated      an update does not count on: it was given twice, or taken back
    unknown       a window in which no record fell
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

ABORTED = b"aborted "
"""What stands before every value that is written only to be aborted."""
SHOWN_MAX = 5


class Seen(NamedTuple):
    """A record as a reader was given it."""

    offset: int
    key: bytes
    value: bytes
    timestamp_ms: int = 0


def transformed(value: bytes) -> bytes:
    """Return what a loop makes of an input record."""
    return b"done " + value


def violations(
    expected: Mapping[int, Sequence[bytes]], found: Mapping[int, Sequence[Seen]]
) -> list[str]:
    """Return everything that is wrong with an output, partition by partition."""
    problems: list[str] = []
    for partition in sorted({*expected, *found}):
        content = found.get(partition, ())
        wrong = _order_problems(expected.get(partition, ()), content)
        problems += [f"partition {partition}: {line}" for line in _told(wrong)]
    return problems + went_back(found)


def _order_problems(expected: Sequence[bytes], found: Iterable[Seen]) -> dict[str, list[bytes]]:
    rank = {value: number for number, value in enumerate(expected)}
    problems: dict[str, list[bytes]] = defaultdict(list)
    there: set[bytes] = set()
    last = -1
    for _, _, value, _ in found:
        if value.startswith(ABORTED):
            problems["aborted"].append(value)
        elif value not in rank:
            problems["unknown"].append(value)
        elif value in there:
            problems["doubled"].append(value)
        elif rank[value] < last:
            problems["out of order"].append(value)
        there.add(value)
        last = max(last, rank.get(value, -1))
    problems["lost"] = [value for value in expected if value not in there]
    return problems


def went_back(found: Mapping[int, Sequence[Seen]]) -> list[str]:
    """Return where a reader was given offsets that do not grow."""
    problems = []
    for partition, content in sorted(found.items()):
        for before, after in pairwise(content):
            if after.offset <= before.offset:
                step = f"from {before.offset} to {after.offset}"
                problems.append(f"partition {partition}: went back {step}")
    return problems


def window_counts(records: Iterable[Seen], window_ms: int) -> Counter[bytes]:
    """Return how many records each key has in each window, by the label that the count writes."""
    return Counter(
        b"%s@%d" % (record.key, record.timestamp_ms - record.timestamp_ms % window_ms)
        for record in records
    )


def count_violations(
    expected: Mapping[bytes, int], found: Mapping[int, Sequence[Seen]]
) -> list[str]:
    """Return everything that is wrong with the updates of windows, in the order they were read."""
    problems: dict[str, list[bytes]] = defaultdict(list)
    last: dict[bytes, int] = dict.fromkeys(expected, 0)
    for content in found.values():
        for _, label, value, _ in content:
            if kind := _update_problem(last.get(label), int(value)):
                problems[kind].append(b"%s: %s after %d" % (label, value, last.get(label, 0)))
            last[label] = max(int(value), last.get(label, 0))
    for label, count in expected.items():
        if last[label] != count:
            kind = "lost" if last[label] < count else "too many"
            problems[kind].append(b"%s: %d of %d" % (label, last[label], count))
    return [*_told(problems), *went_back(found)]


def _update_problem(last: int | None, count: int) -> str:
    if last is None:
        return "unknown"
    if count <= last:
        return "repeated"
    return "gap" if count > last + 1 else ""


def _told(problems: Mapping[str, list[bytes]]) -> Iterator[str]:
    for name, which in problems.items():
        if which:
            shown = [value.decode(errors="replace") for value in which[:SHOWN_MAX]]
            yield f"{len(which)} {name}: {shown}"
