"""The rules of exactly-once processing, as pure functions over the records that were read.

Two kinds of work are checked. A loop makes one output record of each input record, in the same
partition, and `violations` compares what was read with what was sent:

    lost          a record is missing
    doubled       a record is there twice
    out of order  a record comes after one that was sent later
    aborted       a reader got a record of an aborted transaction
    unknown       a record that no client has made
    went back     a reader got an offset that is not larger than the one before it

A windowed count writes each new count, so that the updates of a window are 1, 2, 3 and so on up to
the number of its records. `count_violations` finds deviations:

    lost          the last update is less than the number of records, or there is none
    too many      the last update is more than that
    gap           an update counts more than one record: another update was lost
    repeated      an update is not larger than the one before it
    unknown       a window without records
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

ABORTED = b"aborted "
"""The prefix of values that are written only to be aborted."""
SHOWN_MAX = 5


class Seen(NamedTuple):
    """A record that a reader got."""

    offset: int
    key: bytes
    value: bytes
    timestamp_ms: int = 0


def transformed(value: bytes) -> bytes:
    """Return the output that a loop makes of an input record."""
    return b"done " + value


def violations(
    expected: Mapping[int, Sequence[bytes]], found: Mapping[int, Sequence[Seen]]
) -> list[str]:
    """Return all problems of an output, partition by partition."""
    problems: list[str] = []
    for partition in sorted({*expected, *found}):
        content = found.get(partition, ())
        wrong = _order_problems(expected.get(partition, ()), content)
        problems += [f"partition {partition}: {line}" for line in _described(wrong)]
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
    """Return where a reader got offsets that do not increase."""
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
    """Return all problems of the updates of windows, in the order they were read."""
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
    return [*_described(problems), *went_back(found)]


def _update_problem(last: int | None, count: int) -> str:
    if last is None:
        return "unknown"
    if count <= last:
        return "repeated"
    return "gap" if count > last + 1 else ""


def _described(problems: Mapping[str, list[bytes]]) -> Iterator[str]:
    for name, which in problems.items():
        if which:
            shown = [value.decode(errors="replace") for value in which[:SHOWN_MAX]]
            yield f"{len(which)} {name}: {shown}"
