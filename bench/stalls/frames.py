"""Encodes requests once, to be sent many times; responses are only counted."""

import asyncio
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Self, TypeVar

from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import decoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import Record, build
from barnabas.testing.raw_client import LENGTH, frame_of, framed

PRODUCE_VERSION = 9
LIST_OFFSETS_VERSION = 7
ALL = -1

M = TypeVar("M", bound=Message)


def produce(topic: str, batches: Mapping[int, bytes], acks: int = ALL) -> bytes:
    """Return a Produce of one batch for each of some partitions."""
    data = [PartitionProduceData(index=n, records=batch) for n, batch in batches.items()]
    named = TopicProduceData(name=topic, partition_data=data)
    request = ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[named])
    return framed(frame_of(request, PRODUCE_VERSION))


def batch(keys: Sequence[bytes | None], size: int, timestamp_ms: int | None = None) -> bytes:
    """Return a batch of one record per key; records are a millisecond apart."""
    start_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
    value = b"x" * size
    records = [Record(n, start_ms + n, key, value) for n, key in enumerate(keys)]
    return bytes(build(records))


def offsets(topic: str, partitions: Sequence[int], timestamp: int) -> bytes:
    """Return a ListOffsets for one time in some partitions."""
    wanted = [ListOffsetsPartition(partition_index=n, timestamp=timestamp) for n in partitions]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    return framed(frame_of(request, LIST_OFFSETS_VERSION))


class Line:
    """One connection on which each request waits for its response."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: tuple[str, int]) -> Self:
        """Connect."""
        reader, writer = await asyncio.open_connection(*address, limit=1 << 22)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(reader, writer)

    def send(self, content: bytes) -> None:
        """Send bytes unchanged, without waiting for room."""
        self._writer.write(content)

    async def drain(self) -> None:
        """Wait until there is room to send more."""
        await self._writer.drain()

    async def answer(self) -> bytes:
        """Return the next response without its length."""
        (size,) = LENGTH.unpack(await self._reader.readexactly(4))
        return await self._reader.readexactly(size)

    async def ask(self, content: bytes) -> bytes:
        """Send one request; return its response."""
        self.send(content)
        return await self.answer()

    async def message(self, request: Message, version: int, expected: type[M]) -> M:
        """Send one request; return its response as a message."""
        frame = await self.ask(framed(frame_of(request, version)))
        facts = next(facts for facts in APIS.values() if facts.response == expected.__name__)
        message, _ = decoder(expected, version)(frame, 5 if version >= facts.flexible_from else 4)
        return message

    def close(self) -> None:
        """Close at once."""
        self._writer.transport.abort()
