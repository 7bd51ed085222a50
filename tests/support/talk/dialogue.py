"""A node and somebody who talks to it in frames, with no socket, thread or clock between them.

    talk = Dialogue(folder)
    answer = talk.ask(MetadataRequest(topics=None), version=12)

Requests and answers pass through the generated codecs, so that Produce and Fetch, which the
broker reads and writes by hand, are held against them in every dialogue. Time stands still until
`pass_time` moves it; syncs happen at once unless `hold_syncs` keeps them back, and scans unless
`hold_scans` does.
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from barnabas import config
from barnabas.effects import Ask, Effect, Flush, MakeDurable, Notice, Remove, Scan
from barnabas.handlers.context import RequestContext
from barnabas.handlers.registry import PRODUCE, SERVED, dispatch, serve_itself
from barnabas.handlers.rows.row import Answer
from barnabas.handlers.shapes import Shapes
from barnabas.model.callers import unauthenticated
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk, FileSlice
from barnabas.model.steps import Call, finish, resume
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, KEYS, response_class
from barnabas.protocol.codec import decode_exact, decoder, encoder
from barnabas.protocol.headers import API_VERSIONS, parse_request_header, response_header
from barnabas.protocol.message import Message
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.produce import parse_request as parse_produce
from barnabas.server.disk import OsDisk

CLIENT = unauthenticated("test")
PEER = unauthenticated("10.0.0.2", peer=True)
START_MS = 1_700_000_000_000


class Exchange:
    """One request; its answer is there once the node has given it."""

    def __init__(self, api_key: int, version: int, correlation_id: int) -> None:
        self._api_key = api_key
        self._version = version
        self._correlation_id = correlation_id
        self.content: bytes | None = None
        self.pending: Pending[list[Chunk]] | None = None
        self.context = RequestContext(version, None, CLIENT, 0)

    @property
    def throttle_ms(self) -> int:
        """For how long the connection would not be read after the answer."""
        return self.context.throttle_ms

    @property
    def waiting(self) -> bool:
        """Whether there is no answer yet."""
        return self.content is None

    @property
    def answer(self) -> Any:
        """The answer, decoded by the generated codec."""
        assert self.content is not None, "the node has not answered"
        head = response_header(self._api_key, self._version, self._correlation_id)
        assert self.content.startswith(head), "the answer has another header"
        body = self.content[len(head) :]
        return decode_exact(response_class(self._api_key), self._version, body)

    def abandon(self) -> None:
        """Close the connection before the answer is there."""
        assert self.pending is not None
        self.pending.abandon()

    def take(self, chunks: list[Chunk]) -> None:
        """Put an answer together as the edge would send it."""
        parts = [
            chunk.file.read(chunk.position, chunk.length) if isinstance(chunk, FileSlice) else chunk
            for chunk in chunks
        ]
        self.content = b"".join(parts)


class Dialogue:
    """A node on a real folder, and the outside world that it needs."""

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        flags = {**(settings or {}), "broker.data_dir": str(folder)}
        self.settings = config.load(None, {}, flags)
        self.caller = CLIENT
        """The client that the requests come from."""
        self.now_ms = START_MS
        self.hold_syncs = False
        self.hold_scans = False
        self.fast_path = False
        """Whether requests go by `handlers/shapes.py` where they can."""
        self.notices: list[Notice] = []
        self.asked: list[Ask] = []
        """What other brokers were asked; a test answers."""
        self._held: list[Flush | MakeDurable] = []
        self._call: Call | None = None
        self.scans: list[Scan] = []
        """The scans that are held back."""
        self._correlation_id = 0
        self.node = self._start()

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Return the answer to a request, in the highest version unless told otherwise.

        What waits for something else to be asked is answered as if that were so.
        """
        exchange = self.send(request, version)
        overtaken = exchange.context.overtaken
        if exchange.waiting and overtaken is not None:
            overtaken()
            self.settle()
        return exchange.answer

    def send(self, request: Message, version: int | None = None) -> Exchange:
        """Hand a request to the node; the answer may come later."""
        key = KEYS[type(request).__name__]
        chosen = SERVED[key].high if version is None else version
        return self.send_frame(self.frame(request, chosen), key, chosen)

    def send_frame(self, frame: bytes, key: int, version: int) -> Exchange:
        """Hand a frame to the node as it is."""
        exchange = Exchange(key, version, self._correlation_id)
        content = memoryview(bytearray(frame))
        answer: Answer = self._once_more(content) if self.fast_path else None
        if answer is None:
            answer, context = dispatch(self.node, content, self.caller, self.now_ms)
            exchange.context = context
        content[:] = b"\xff" * len(content)  # as the next request would in the receive buffer
        if isinstance(answer, Pending):
            exchange.pending = answer
            answer.when_done(exchange.take)
        elif answer is not None:
            exchange.take(answer)
        self.settle()
        return exchange

    def frame(self, request: Message, version: int) -> bytes:
        """Write a request with its header; a version that nobody has gets an empty body."""
        key = KEYS[type(request).__name__]
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id="dialogue",
        )
        flexible = version >= APIS[key].flexible_from
        head = encoder(RequestHeader, 2 if flexible else 1)(header)
        if key == API_VERSIONS and version > APIS[key].high:
            return head
        return head + encoder(type(request), version)(request)

    def pass_time(self, duration_ms: int) -> None:
        """Let time go by, and whatever is due happen."""
        self.now_ms += duration_ms
        self.node.timers.now_ms += duration_ms
        self.node.timers.wall_ms = self.now_ms
        self.node.timers.fire()
        self.settle()

    def settle(self) -> None:
        """Carry out what the node asked for, until it asks for nothing more."""
        while self.node.outbox:
            effects = self.node.outbox[:]
            self.node.outbox.clear()
            for effect in effects:
                self._carry_out(effect)

    def release_syncs(self) -> None:
        """Let the syncs that were held back happen."""
        self.hold_syncs = False
        held, self._held = self._held, []
        self.node.outbox.extend(held)
        self.settle()

    def release_scans(self) -> None:
        """Do the scans that were held back, to their ends."""
        self.hold_scans = False
        held, self.scans = self.scans, []
        self.node.outbox.extend(held)
        self.settle()

    def step_scan(self) -> bool:
        """Make one step of the first scan that is held back; tell whether there are more."""
        steps = self.scans[0].steps
        try:
            self._call = resume(steps, self._call)
        except StopIteration:
            self._call = None
            del self.scans[0]
        self.settle()
        return bool(self.scans)

    def restart(self, *, crash: bool = False) -> None:
        """Stop and start again on the same folder; a crash leaves without a word."""
        if not crash:
            self.stop()
        self.node = self._start()

    def _once_more(self, frame: memoryview) -> Answer:
        """Send a request as if one just like it had been sent before."""
        header = parse_request_header(frame)
        shapes, prefix_bytes = Shapes(self.node).of(CLIENT), 0
        if header.api_key == PRODUCE:
            produce = parse_produce(header.api_version, frame, header.body)
            prefix_bytes = shapes.learn_produce(frame, header, produce)
        elif header.api_key == ApiKey.OFFSET_COMMIT:
            commit, _ = decoder(OffsetCommitRequest, header.api_version)(frame, header.body)
            for _ in range(2):
                prefix_bytes = shapes.learn_commit(frame, header, commit, self.now_ms - 1)
        known = shapes.answer(frame, prefix_bytes, self.now_ms) if prefix_bytes else None
        return [known[4:]] if isinstance(known, bytes) else known

    def _start(self) -> Node:
        node = Node(self.settings, OsDisk(), Random(self._correlation_id))
        serve_itself(node)
        node.timers.wall_ms = self.now_ms
        node.start(self.now_ms)
        self.node = node
        self.settle()
        return node

    def stop(self) -> None:
        """Sync everything and stop cleanly, for another broker to go on with the folder."""
        for partition in self.node.partitions.values():
            partition.flusher.flush()
        self.release_syncs()
        self.node.stop()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Flush() | MakeDurable() if self.hold_syncs:
                self._held.append(effect)
            case Flush():
                for file in effect.task.files:
                    file.sync()
                effect.done()
            case MakeDurable():
                effect.sync.carry_out(self.node.disk)
                effect.done()
            case Scan():
                self._scan(effect)
            case Remove():
                for path in effect.paths:
                    self.node.disk.remove_tree(path)
            case Ask():
                self.asked.append(effect)
            case Notice():
                self.notices.append(effect)
            case _:
                raise AssertionError(f"a dialogue does not expect {effect}")

    def _scan(self, scan: Scan) -> None:
        if self.hold_scans:
            self.scans.append(scan)
        else:
            finish(scan.steps)
