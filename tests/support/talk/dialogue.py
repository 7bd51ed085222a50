"""A node and a client that exchange frames, without a socket, thread or clock.

    talk = Dialogue(folder)
    answer = talk.ask(MetadataRequest(topics=None), version=12)

Requests and responses pass through the generated codecs, so that every dialogue also checks the
hand-written codecs of Produce and Fetch against them. Time passes only in `pass_time`. Syncs happen
at once unless `hold_syncs` is set, and scans unless `hold_scans` is set.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from barnabas import config
from barnabas.effects import Ask, AuditLine, Effect, Flush, MakeDurable, Notice, Remove, Scan
from barnabas.handlers.context import RequestContext
from barnabas.handlers.produce_fetch.produce_again import PacedAnswer
from barnabas.handlers.registry import PRODUCE, SERVED, dispatch, serve_itself
from barnabas.handlers.rows.row import Answer
from barnabas.handlers.shapes import Shapes
from barnabas.model.callers import PEER_LISTENER, unauthenticated
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
from barnabas.server.files.disk import OsDisk

CLIENT = unauthenticated("test")
PEER = unauthenticated("10.0.0.2", PEER_LISTENER)
START_MS = 1_700_000_000_000


class Exchange:
    """One request; its response is there once the node has given it."""

    def __init__(self, api_key: int, version: int, correlation_id: int) -> None:
        self._api_key = api_key
        self._version = version
        self._correlation_id = correlation_id
        self.content: bytes | None = None
        self.pending: Pending[list[Chunk]] | None = None
        self.context = RequestContext(version, None, CLIENT, 0)

    @property
    def throttle_ms(self) -> int:
        """How long the connection is not read after the response, because of a quota."""
        return self.context.throttle_ms

    @property
    def waiting(self) -> bool:
        """Whether there is no response yet."""
        return self.content is None

    @property
    def answer(self) -> Any:
        """The response, decoded by the generated codec."""
        assert self.content is not None, "the node has not answered"
        head = response_header(self._api_key, self._version, self._correlation_id)
        assert self.content.startswith(head), "the response has another header"
        body = self.content[len(head) :]
        return decode_exact(response_class(self._api_key), self._version, body)

    def abandon(self) -> None:
        """Close the connection before the response is there."""
        assert self.pending is not None
        self.pending.abandon()

    def take(self, chunks: list[Chunk]) -> None:
        """Assemble a response as the edge would send it."""
        parts = [
            chunk.file.read(chunk.position, chunk.length) if isinstance(chunk, FileSlice) else chunk
            for chunk in chunks
        ]
        self.content = b"".join(parts)


class Dialogue:
    """A node on a real folder, and its environment."""

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        flags = {**(settings or {}), "broker.data_dir": str(folder)}
        self.settings = config.load(None, {}, flags)
        self.caller = unauthenticated(CLIENT.host)
        """The client that sends the requests; it refers to what ends with its connection."""
        self.now_ms = START_MS
        self.hold_syncs = False
        self.hold_scans = False
        self.fast_path = False
        """Whether requests use `handlers/shapes.py` if they can."""
        self.notices: list[Notice] = []
        self.audited: list[dict[str, Any]] = []
        """The lines of the audit log."""
        self.asked: list[Ask] = []
        """Pending requests to other brokers; a test answers them."""
        self._held: list[Flush | MakeDurable] = []
        self._call: Call | None = None
        self.scans: list[Scan] = []
        """The held scans."""
        self._correlation_id = 0
        self.node = self._start()

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Return the response to a request, in the highest version by default.

        The request must not have to wait for another request.
        """
        exchange = self.send(request, version)
        overtaken = exchange.context.overtaken
        if exchange.waiting and overtaken is not None:
            overtaken()
            self.settle()
        return exchange.answer

    def send(self, request: Message, version: int | None = None) -> Exchange:
        """Send a request to the node; the response may come later."""
        key = KEYS[type(request).__name__]
        chosen = SERVED[key].high if version is None else version
        return self.send_frame(self.frame(request, chosen), key, chosen)

    def send_frame(self, frame: bytes, key: int, version: int) -> Exchange:
        """Send a frame to the node as it is."""
        exchange = Exchange(key, version, self._correlation_id)
        content = memoryview(bytearray(frame))
        answer: Answer = self._once_more(content, exchange) if self.fast_path else None
        if answer is None:
            answer, context = dispatch(self.node, content, self.caller, self.now_ms)
            exchange.context = context
        content[:] = b"\xff" * len(
            content
        )  # as the next request would overwrite the receive buffer
        if isinstance(answer, Pending):
            exchange.pending = answer
            answer.when_done(exchange.take)
        elif answer is not None:
            exchange.take(answer)
        self.settle()
        return exchange

    def frame(self, request: Message, version: int) -> bytes:
        """Encode a request with its header; an unknown version gets an empty body."""
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
        """Let time pass, and fire the timers that are due."""
        self.now_ms += duration_ms
        self.node.timers.now_ms += duration_ms
        self.node.timers.wall_ms = self.now_ms
        self.node.timers.fire()
        self.settle()

    def settle(self) -> None:
        """Carry out the node's effects until there are none."""
        while self.node.outbox:
            effects = self.node.outbox[:]
            self.node.outbox.clear()
            for effect in effects:
                self._carry_out(effect)

    def release_syncs(self) -> None:
        """Complete the held syncs."""
        self.hold_syncs = False
        held, self._held = self._held, []
        self.node.outbox.extend(held)
        self.settle()

    def release_scans(self) -> None:
        """Run the held scans to their ends."""
        self.hold_scans = False
        held, self.scans = self.scans, []
        self.node.outbox.extend(held)
        self.settle()

    def step_scan(self) -> bool:
        """Run one step of the first held scan; return whether there are more."""
        steps = self.scans[0].steps
        try:
            self._call = resume(steps, self._call)
        except StopIteration:
            self._call = None
            del self.scans[0]
        self.settle()
        return bool(self.scans)

    def restart(self, *, crash: bool = False) -> None:
        """Stop and restart on the same folder; a crash does not stop cleanly."""
        if not crash:
            self.stop()
        self.node = self._start()

    def _once_more(self, frame: memoryview, exchange: Exchange) -> Answer:
        """Send a request as if an identical one had been sent before."""
        header = parse_request_header(frame)
        shapes, prefix_bytes = Shapes(self.node).of(self.caller), 0
        if header.api_key == PRODUCE:
            produce = parse_produce(header.api_version, frame, header.body)
            prefix_bytes = shapes.learn_produce(frame, header, produce)
        elif header.api_key == ApiKey.OFFSET_COMMIT:
            commit, _ = decoder(OffsetCommitRequest, header.api_version)(frame, header.body)
            for _ in range(2):
                prefix_bytes = shapes.learn_commit(frame, header, commit, self.now_ms - 1)
        known = shapes.answer(frame, prefix_bytes, self.now_ms) if prefix_bytes else None
        if isinstance(known, PacedAnswer):
            known, exchange.context = known
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
        """Sync everything and stop cleanly, so that another broker can use the folder."""
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
            case Notice() | AuditLine():
                self._hear(effect)
            case _:
                raise AssertionError(f"unexpected effect: {effect}")

    def _hear(self, said: Notice | AuditLine) -> None:
        if isinstance(said, Notice):
            self.notices.append(said)
        else:
            self.audited.append(json.loads(said.text))

    def _scan(self, scan: Scan) -> None:
        if self.hold_scans:
            self.scans.append(scan)
        else:
            finish(scan.steps)
