"""Plans the splits of a batch from offsets. It sends no requests.

    latest offsets -> admitted (the end of this batch) -> ranges (from start to end) -> splits
    -> shared (small ones together in a task) or gathered (at most the configured number of tasks)

Ranges are compared with the records that the partitions still have. Missing records are data loss:
a message with exactly the missing offsets either stops the query or is logged.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.spark.query_errors import OptionError
from barnabas.spark.source.offset_json import EARLIEST, LATEST, Offsets

TASK_RECORDS = 1000
"""How many records of several partitions one task of a stream reads.

Starting a task takes Spark and its Python worker as long as reading some thousand records, so a
small micro-batch is done sooner by one task than by one for each partition.
"""


class OffsetRange(NamedTuple):
    """Records of one partition, from an offset to another, exclusive."""

    place: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets in the range."""
        return max(0, self.end - self.start)


class Plan(NamedTuple):
    """The ranges to read, and messages about lost records."""

    ranges: list[OffsetRange]
    losses: list[str]


def covered(option: str, given: Offsets, existing: Collection[TopicPartition]) -> None:
    """Refuse offsets (or times) that omit partitions, or name others."""
    missing = sorted(set(existing) - set(given))
    if missing:
        raise OptionError(
            f"{option} leaves out {_places(missing)}; name every partition "
            f"({EARLIEST} is the earliest offset, {LATEST} the latest)"
        )
    unknown = sorted(set(given) - set(existing))
    if unknown:
        raise OptionError(
            f"{option} names {_places(unknown)}, which this read does not cover; take it out, "
            "or correct the name"
        )


def resolved(given: Offsets, earliest: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    """Replace -1 and -2 by the latest and earliest offsets."""
    edges: Mapping[int, Offsets] = {EARLIEST: earliest, LATEST: latest}
    return {
        place: edges[offset][place] if offset in edges else offset
        for place, offset in given.items()
    }


def admitted(
    start: Offsets, latest: Offsets, earliest_of_new: Offsets, limit: int
) -> dict[TopicPartition, int]:
    """Return the end offsets of a batch of at most `limit` records, each partition in proportion.

    As far as the limit allows, every partition with new records advances, so that a much larger
    partition does not starve it, and it does not hold back a watermark.
    """
    begins = {place: start.get(place, earliest_of_new.get(place, 0)) for place in latest}
    waiting = {p: latest[p] - begins[p] for p in sorted(latest) if latest[p] > begins[p]}
    ends = dict(latest)
    if sum(waiting.values()) > limit:
        for place, count in _shares(waiting, limit).items():
            ends[place] = begins[place] + count
    return ends


def _shares(waiting: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """Divide a limit in proportion, with at least one for each."""
    total = sum(waiting.values())
    shares = {place: max(1, limit * count // total) for place, count in waiting.items()}
    with_more = [place for place, count in waiting.items() if shares[place] < count]
    by_fraction = sorted(with_more, key=lambda place: -(limit * waiting[place] % total))
    for place in by_fraction[: max(0, limit - sum(shares.values()))]:
        shares[place] += 1
    largest = [(-share, waiting[place], place) for place, share in shares.items()]
    heapify(largest)
    for _ in range(sum(shares.values()) - limit):
        negative, count, place = largest[0]
        heapreplace(largest, (negative + 1, count, place))
    return {place: -negative for negative, _, place in largest}


def ranges_between(
    start: Offsets, end: Offsets, earliest: Offsets, same: Collection[str] = ()
) -> Plan:
    """Return the existing and the missing records between two positions.

    A partition that is new at the end starts at its earliest offset. `earliest` has the partitions
    that exist now. An end before the start means that a topic was created again and is read from
    its start, unless it is known to be the `same`: then its log was truncated.
    """
    ranges: list[OffsetRange] = []
    losses: list[str] = []
    for place in sorted(set(start) | set(end)):
        if place not in earliest or place not in end:
            losses.append(deleted_partition_message(place, start.get(place, 0), end.get(place)))
            continue
        planned, loss = _range(place, start.get(place), end[place], earliest[place])
        if end[place] < start.get(place, 0) and place.topic in same:
            planned = OffsetRange(place, end[place], end[place])
        losses += [loss] if loss else []
        ranges += [planned] if planned.size else []
    return Plan(ranges, losses)


def _range(
    place: TopicPartition, start: int | None, end: int, earliest: int
) -> tuple[OffsetRange, str | None]:
    if start is None:
        loss = deleted_records_message(place, 0, earliest) if earliest > 0 else None
        return OffsetRange(place, earliest, end), loss
    if end < start:
        return OffsetRange(place, earliest, end), truncation_message(place, end, start)
    if earliest > start:
        first = min(earliest, end)
        return OffsetRange(place, first, end), deleted_records_message(place, start, first)
    return OffsetRange(place, start, end), None


def truncation_message(place: TopicPartition, latest: int, wanted: int) -> str:
    """Return the message that a partition ends before the expected offset."""
    return (
        f"{place}: the log ends at offset {latest}, but offsets {latest} to {wanted - 1} are "
        "expected: the topic was recreated, its log was truncated, or the offset never existed"
    )


def deleted_records_message(place: TopicPartition, start: int, end: int) -> str:
    """Return the message that records of a partition were deleted."""
    return (
        f"{place}: offsets {start} to {end - 1} ({end - start} offsets) were deleted, by retention "
        "or by DeleteRecords, before they were read"
    )


def recreated_topic_message(topic: str, start: Offsets) -> str:
    """Return the message that a topic was recreated since it was last read."""
    reached = [
        f"{place.partition} from offset {start[place]} on"
        for place in sorted(start)
        if place.topic == topic
    ]
    return (
        f"{topic}: the topic was deleted and created again, so its topic id has changed. What "
        f"the old topic held in partition {', '.join(reached) or 'none'} is gone; the new topic is "
        "read from its start"
    )


def deleted_partition_message(place: TopicPartition, start: int, end: int | None = None) -> str:
    """Return the message that a partition was deleted."""
    upto = "on" if end is None else f"to {end - 1}"
    return f"{place}: the partition does not exist any more; offsets {start} {upto} are gone"


def splits(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Divide ranges into pieces for tasks: enough of them, and none too large."""
    whole = [each for each in ranges if each.size]
    total = sum(each.size for each in whole)
    pieces: list[OffsetRange] = []
    for each in whole:
        count = 1 if max_records is None else -(-each.size // max_records)
        if min_partitions is not None and min_partitions > len(whole):
            count = max(count, -(-each.size * min_partitions // total))
        pieces += _cut(each, min(count, each.size))
    return pieces


def shared(pieces: Iterable[OffsetRange], records: int) -> list[list[OffsetRange]]:
    """Put consecutive pieces into one task while they have at most `records` records together."""
    tasks: list[list[OffsetRange]] = []
    room = 0
    for piece in pieces:
        if not tasks or piece.size > room:
            tasks.append([])
            room = records
        tasks[-1].append(piece)
        room -= piece.size
    return tasks


def gathered(pieces: Sequence[OffsetRange], tasks: int | None) -> list[list[OffsetRange]]:
    """Put pieces into at most `tasks` tasks: the largest first, each into the smallest task.

    With None each piece gets a separate task.
    """
    if tasks is None:
        return [[piece] for piece in pieces]
    found: list[list[OffsetRange]] = [[] for _ in range(min(tasks, len(pieces)))]
    least = [(0, number) for number in range(len(found))]
    for piece in sorted(pieces, key=lambda piece: (-piece.size, piece)):
        size, number = least[0]
        found[number].append(piece)
        heapreplace(least, (size + piece.size, number))
    return [sorted(task) for task in found]


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    cuts = [whole.start + whole.size * number // count for number in range(count + 1)]
    return [OffsetRange(whole.place, start, end) for start, end in pairwise(cuts)]


def _places(places: Iterable[TopicPartition]) -> str:
    return ", ".join(str(place) for place in places)
