"""Tests that the fast path of Produce and the handler agree, byte for byte."""

from random import Random
from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import config
from barnabas.effects import Flush
from barnabas.handlers.produce_fetch.produce_again import PacedAnswer
from barnabas.handlers.registry import dispatch
from barnabas.handlers.shapes import Shapes
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.protocol.codec import encoder
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import Record, build
from barnabas.server.files.disk import OsDisk
from tests.support.talk.dialogue import CLIENT

NOW_MS = 1_700_000_000_000
VERSIONS = range(3, 14)
DELETE_T = b"\0\x14\0\x01\0\0\0\x01\0\x04test" + encoder(DeleteTopicsRequest, 1)(
    DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
)


class Twin:
    """A node that answers with or without the fast path."""

    def __init__(self, folder: str, flush: str, quota: int = 0) -> None:
        flags = {
            "broker.data_dir": folder,
            "storage.flush": flush,
            "broker.default_partitions": 2,
            "performance.producer_quota": quota,
        }
        self.node = Node(config.load(None, {}, flags), OsDisk(), Random(7))
        self.node.start(NOW_MS)
        self.shapes = Shapes(self.node).of(CLIENT)
        self.prefix_bytes = 0
        self.fast_answers = 0
        created = self.node.auto_create("t", NOW_MS)
        self._sync()
        assert created.done

    def ask(self, frame: bytes, *, fast: bool) -> bytes:
        view = memoryview(bytearray(frame))
        if fast and self.prefix_bytes:
            known = self.shapes.answer(view, self.prefix_bytes, NOW_MS)
            if known is not None:
                self.fast_answers += 1
                if isinstance(known, PacedAnswer):
                    assert known.context.throttle_ms > 0
                    known = known.answer
                return known[4:] if isinstance(known, bytes) else self._when_done(known)
        shapes = self.shapes if fast else None
        answer, context = dispatch(self.node, view, CLIENT, NOW_MS, shapes)
        self.prefix_bytes = context.prefix_bytes
        assert answer is not None
        if isinstance(answer, Pending):
            return self._when_done(answer)
        return joined(answer)

    def _when_done(self, pending: Pending[list[Chunk]]) -> bytes:
        got: list[list[Chunk]] = []
        pending.when_done(got.append)
        self._sync()
        return joined(got[0])

    def _sync(self) -> None:
        while self.node.outbox:
            effect = self.node.outbox.pop(0)
            if isinstance(effect, Flush):
                effect.done()


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk for chunk in chunks if isinstance(chunk, bytes | bytearray))


def request(version: int, twin: Twin, step: tuple[int, int, int, int, bool]) -> bytes:
    partition, acks, count, size, spoiled = step
    batch = build([Record(n, NOW_MS, None, b"x" * size) for n in range(count)])
    if spoiled:
        batch[-1] ^= 1
    topic_id = bytes(twin.node.image.topics["t"].topic_id)
    topic = TopicProduceData(topic_id=topic_id) if version >= 13 else TopicProduceData(name="t")
    topic.partition_data = [PartitionProduceData(index=partition, records=bytes(batch))]
    body = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=1000, topic_data=[topic])
    head = b"\0\0" + version.to_bytes(2, "big") + size.to_bytes(4, "big") + b"\0\x04test"
    return head + (b"\0" if version >= 9 else b"") + encoder(ProduceRequest, version)(body)


steps = st.tuples(
    st.integers(0, 2),
    st.sampled_from((1, -1)),
    st.integers(1, 3),
    st.integers(0, 300),
    st.booleans(),
)


@pytest.mark.parametrize("flush", ["ack", "interval"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    version=st.sampled_from(VERSIONS),
    quota=st.sampled_from((0, 50)),
    dialogue=st.lists(steps, min_size=1, max_size=12),
)
def test_both_ways_answer_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    flush: str,
    version: int,
    quota: int,
    dialogue: list[tuple[int, int, int, int, bool]],
) -> None:
    folder = tmp_path_factory.mktemp("twins")
    slow, fast = Twin(f"{folder}/slow", flush, quota), Twin(f"{folder}/fast", flush, quota)
    for step in dialogue:
        frame = request(version, slow, step)
        assert slow.ask(frame, fast=False) == fast.ask(frame, fast=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_fast_path_is_taken(tmp_path: object, version: int) -> None:
    twin = Twin(f"{tmp_path}/data", "interval")
    for _ in range(5):
        twin.ask(request(version, twin, (0, -1, 1, 100, False)), fast=True)
    assert twin.fast_answers == (4 if version >= 7 else 0)


def test_a_deleted_topic_is_not_written_to(tmp_path: object) -> None:
    twin = Twin(f"{tmp_path}/data", "interval")
    frame = request(9, twin, (0, -1, 1, 100, False))
    twin.ask(frame, fast=True)
    twin.node.partitions["t", 0].retire()  # type: ignore[index]
    twin.ask(frame, fast=True)
    assert twin.fast_answers == 0


def test_a_known_shape_keeps_no_file_of_a_deleted_topic(tmp_path: object) -> None:
    twin = Twin(f"{tmp_path}/data", "interval")
    frame = request(9, twin, (0, -1, 1, 100, False))
    twin.ask(frame, fast=True)
    twin.ask(frame, fast=True)
    assert twin.fast_answers == 1
    file = ref(twin.node.find("t", 0).log.active.file)
    assert file() is not None
    twin.ask(DELETE_T, fast=False)
    twin.node.commits.unsynced.clear()  # as the clock does, a moment later
    assert file() is None
    assert twin.shapes.answer(memoryview(bytearray(frame)), twin.prefix_bytes, NOW_MS) is None


def test_what_is_shorter_than_the_last_request_takes_the_handler(tmp_path: object) -> None:
    twin = Twin(f"{tmp_path}/data", "interval")
    frame = request(9, twin, (0, -1, 1, 100, False))
    twin.ask(frame, fast=True)
    assert (
        twin.shapes.answer(memoryview(frame)[: twin.prefix_bytes - 1], twin.prefix_bytes, 0) is None
    )
    twin.ask(frame, fast=True)
    assert twin.fast_answers == 1
