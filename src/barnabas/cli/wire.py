"""Requests that confluent-kafka cannot make, one at a time, over plain sockets.

    with Wire(bootstrap, properties) as wire:
        answer = wire.ask(wire.coordinator(Kind.TRANSACTION, "billing"), request, Response)

A link asks its broker for ApiVersions first and then speaks the highest version of each API
that both sides know. Whatever fails on the way is a sentence that names broker and API.
Connections are plaintext: TLS and SASL are librdkafka's, and not at hand here.
"""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from barnabas import __version__
from barnabas.cli.connection import settings, split_address
from barnabas.cli.failure import CommandError, kafka_sentence, no_broker
from barnabas.model.errors import ErrorCode, WireError
from barnabas.protocol.apis import APIS, ApiFacts
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.request_header import RequestHeader

CONNECT_TIMEOUT_S = 3.0
ANSWER_TIMEOUT_S = 30.0
RETRY_PATIENCE_S = 15.0
RETRY_PAUSE_S = 0.1
API_VERSIONS = 18
MANY_COORDINATORS_FROM = 4
ANSWER_BYTES_MAX = 1 << 28

NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
"""Codes that go away by themselves, while a coordinator moves, loads, or ends a transaction."""

_LENGTH = Struct(">i")
_FIRST_CODE = Struct(">h")
_KEYS = {facts.request: key for key, facts in APIS.items()}

M = TypeVar("M", bound=Message)


class Kind(IntEnum):
    """What a coordinator looks after."""

    GROUP = 0
    TRANSACTION = 1


class Node(NamedTuple):
    """A broker, where it says it can be reached."""

    id: int
    host: str
    port: int


class Link:
    """One connection, and what the broker behind it serves."""

    def __init__(self, host: str, port: int) -> None:
        self._address = f"{host}:{port}"
        self._socket = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
        self._socket.settimeout(ANSWER_TIMEOUT_S)
        self._correlation_id = 0
        try:
            self._served = self._ask_versions()
        except CommandError:
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def version(self, request: type[Message]) -> int:
        """Return the highest version of an API that both sides know."""
        key = _KEYS[request.__name__]
        facts = APIS[key]
        low, high = self._served.get(key, (0, -1))
        version = min(facts.high, high)
        if version < max(facts.low, low):
            raise CommandError(
                f"The broker at {self._address} does not serve {facts.name} in a version known "
                f"here ({facts.low} to {facts.high}); upgrade the broker"
            )
        return version

    def ask(self, request: Message, expected: type[M]) -> M:
        """Send a request and return its answer."""
        version = self.version(type(request))
        facts = APIS[_KEYS[type(request).__name__]]
        frame = self._exchange(request, facts, version)
        with self._blamed(facts):
            return decode_exact(expected, version, frame, 5 if _is_flexible(facts, version) else 4)

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(
            client_software_name="barnabas-cli", client_software_version=__version__
        )
        facts, version = APIS[API_VERSIONS], APIS[API_VERSIONS].high
        frame = self._exchange(request, facts, version)
        with self._blamed(facts):
            # A broker older than the request answers with this code, in version 0 (KIP-511).
            if frame[4:6] == _FIRST_CODE.pack(ErrorCode.UNSUPPORTED_VERSION):
                version = 0
                frame = self._exchange(request, facts, version)
            answer = decode_exact(ApiVersionsResponse, version, frame, 4)
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    def _exchange(self, request: Message, facts: ApiFacts, version: int) -> bytes:
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=_KEYS[facts.request],
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id="barnabas-cli",
        )
        head = encoder(RequestHeader, 2 if version >= facts.flexible_from else 1)(header)
        body = head + encoder(type(request), version)(request)
        with self._blamed(facts):
            self._socket.sendall(_LENGTH.pack(len(body)) + body)
            (size,) = _LENGTH.unpack(self._receive(4))
            if not 4 <= size <= ANSWER_BYTES_MAX:
                raise WireError(f"an answer of {size} bytes")
            frame = self._receive(size)
            if frame[:4] != _LENGTH.pack(self._correlation_id):
                raise WireError("an answer to another request")
        return frame

    def _receive(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionResetError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    @contextlib.contextmanager
    def _blamed(self, facts: ApiFacts) -> Iterator[None]:
        """Word what goes wrong with the broker and the API."""
        try:
            yield
        except TimeoutError as error:
            raise CommandError(
                f"{self._address} did not answer {facts.name} within {ANSWER_TIMEOUT_S:.0f} s; "
                "look at its log, or try again"
            ) from error
        except OSError as error:
            raise CommandError(
                f"{self._address} closed the connection on {facts.name}; "
                "check that the port is a plaintext one and look at the broker's log"
            ) from error
        except WireError as error:
            raise CommandError(
                f"{self._address} did not answer {facts.name} as a Kafka broker ({error}); "
                "check the port"
            ) from error


class Wire:
    """The brokers of a cluster."""

    def __init__(self, bootstrap: str, properties: list[str] | None) -> None:
        given = settings(bootstrap, properties)
        protocol = str(given.get("security.protocol", "plaintext"))
        if protocol.lower() != "plaintext":
            raise CommandError(
                f"This command cannot speak {protocol}; run it against a plaintext listener"
            )
        self._bootstrap = str(given["bootstrap.servers"])
        self._links: dict[tuple[str, int], Link] = {}
        self._first: Link | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for link in self._links.values():
            link.close()

    def ask(self, node: Node, request: Message, expected: type[M]) -> M:
        """Ask one broker."""
        return self._link_to(node).ask(request, expected)

    def metadata(self) -> MetadataResponse:
        """Return all brokers and all topics, as they are now."""
        return self._any().ask(MetadataRequest(topics=None), MetadataResponse)

    def nodes(self) -> list[Node]:
        """Return all brokers."""
        brokers = self.metadata().brokers
        return sorted(Node(each.node_id, each.host, each.port) for each in brokers)

    def coordinator(self, kind: Kind, key: str) -> Node:
        """Return the broker that looks after a group or a transactional id."""
        link = self._any()
        many = link.version(FindCoordinatorRequest) >= MANY_COORDINATORS_FROM
        request = (
            FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            if many
            else FindCoordinatorRequest(key_type=kind, key=key)
        )

        def found() -> tuple[int, Node]:
            answer = link.ask(request, FindCoordinatorResponse)
            place = answer.coordinators[0] if many else answer
            return place.error_code, Node(place.node_id, place.host, place.port)

        return settled(found, f"The coordinator of {key}")

    def _any(self) -> Link:
        """Return a link to the first broker of the list that answers."""
        if self._first is None:
            for address in self._bootstrap.split(","):
                with contextlib.suppress(OSError):
                    self._first = self._open(*split_address(address))
                    break
            else:
                raise no_broker(self._bootstrap)
        assert self._first is not None
        return self._first

    def _link_to(self, node: Node) -> Link:
        try:
            return self._open(node.host, node.port)
        except OSError as error:
            raise CommandError(
                f"Broker {node.id} says it is at {node.host}:{node.port}, where nobody answers "
                f"({error.strerror or error}); start it, or correct its advertised address"
            ) from error

    def _open(self, host: str, port: int) -> Link:
        if (host, port) not in self._links:
            self._links[host, port] = Link(host, port)
        return self._links[host, port]


T = TypeVar("T")


def settled(ask: Callable[[], tuple[int, T]], what: str) -> T:
    """Ask until the code is none of those that pass by themselves; raise on what is left."""
    deadline_s = time.monotonic() + RETRY_PATIENCE_S
    while True:
        code, value = ask()
        if code not in NOT_YET or time.monotonic() > deadline_s:
            require(code, what)
            return value
        time.sleep(RETRY_PAUSE_S)


def require(code: int, what: str) -> None:
    """Raise unless an answer is free of errors."""
    if code != ErrorCode.NONE:
        from confluent_kafka import KafkaError

        raise CommandError(f"{what}: {kafka_sentence(KafkaError(code))}")


def _is_flexible(facts: ApiFacts, version: int) -> bool:
    return version >= facts.flexible_from and _KEYS[facts.request] != API_VERSIONS
