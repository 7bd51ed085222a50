"""Asks one broker for the offsets and sizes of the partitions that it leads.

ListOffsets names at most `PARTITIONS_AT_ONCE` partitions: meanwhile a broker serves no other
client.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from barnabas.admin.scopes import Place
from barnabas.monitor.broker_line import BrokerLine
from barnabas.monitor.group_asking import error_name, pieces
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

PARTITIONS_AT_ONCE = 500
CLIENT = -1
"""The replica id of clients."""
LATEST, EARLIEST = -1, -2


@dataclass(slots=True)
class OffsetsOfBroker:
    """The partitions that one broker leads."""

    starts: dict[Place, int] = field(default_factory=dict)
    ends: dict[Place, int] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    """How many partitions have no end offset, by the name of the error."""


@dataclass(slots=True)
class DisksOfBroker:
    """The disks of one broker, and the logs on them."""

    disks: Sequence[DescribeLogDirsResult] = ()
    sizes: Mapping[Place, int] = field(default_factory=dict)
    refusal: str | None = None


def ask_offsets(line: BrokerLine, places: Sequence[Place]) -> OffsetsOfBroker:
    """Return the first and next offsets of partitions that a broker leads; ends come first."""
    found = OffsetsOfBroker()
    for piece in pieces(places, PARTITIONS_AT_ONCE):
        _ask(line, piece, LATEST, found.ends, found.refused)
    for piece in pieces(places, PARTITIONS_AT_ONCE):
        _ask(line, piece, EARLIEST, found.starts, Counter())
    return found


def _ask(
    line: BrokerLine,
    places: Sequence[Place],
    timestamp: int,
    found: dict[Place, int],
    refused: Counter[str],
) -> None:
    topics = [
        ListOffsetsTopic(
            name=name,
            partitions=[
                ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                for _, number in members
            ],
        )
        for name, members in groupby(places, key=lambda place: place[0])
    ]
    request = ListOffsetsRequest(replica_id=CLIENT, topics=topics)
    for topic in line.ask(request, ListOffsetsResponse).topics:
        for each in topic.partitions:
            if each.error_code:
                refused[error_name(each.error_code)] += 1
            elif each.offset >= 0:
                found[topic.name, each.partition_index] = each.offset


def ask_disks(line: BrokerLine) -> DisksOfBroker:
    """Return the disks of a broker and the sizes of all its logs."""
    answer = line.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    if answer.error_code:
        return DisksOfBroker(refusal=error_name(answer.error_code))
    usable = [each for each in answer.results if not each.error_code]
    sizes = {
        (topic.name, each.partition_index): each.partition_size
        for disk in usable
        for topic in disk.topics
        for each in topic.partitions
        if not each.is_future_key
    }
    disks = [
        DescribeLogDirsResult(
            log_dir=each.log_dir, total_bytes=each.total_bytes, usable_bytes=each.usable_bytes
        )
        for each in usable
    ]
    return DisksOfBroker(disks=disks, sizes=sizes)
