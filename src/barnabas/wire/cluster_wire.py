"""A client for requests to the brokers of a cluster, one at a time.

with Wire({"bootstrap.servers": "127.0.0.1:9092"}) as wire:
    answer = wire.ask(wire.coordinator(Kind.TRANSACTION, "billing"), request, Response)
"""

import time
from collections.abc import Callable, Mapping
from enum import IntEnum
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from barnabas.model.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.addresses import split_address
from barnabas.wire.link import ANSWER_TIMEOUT_S, Link
from barnabas.wire.link_security import link_security
from barnabas.wire.wire_failures import LinkError, RefusedError

RETRY_PATIENCE_S = 15.0
RETRY_PAUSE_S = 0.1
MANY_COORDINATORS_FROM = 4

NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_CONTROLLER,
}
"""Temporary codes: a coordinator moves, loads, or ends a transaction, or a controller is
elected."""

M = TypeVar("M", bound=Message)


class Kind(IntEnum):
    """The kinds of coordinators."""

    GROUP = 0
    TRANSACTION = 1


class Node(NamedTuple):
    """A broker, with its advertised address."""

    id: int
    host: str
    port: int


class Wire:
    """The brokers of a cluster."""

    def __init__(
        self,
        properties: Mapping[str, object],
        client_id: str = "barnabas",
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        """Take librdkafka's properties: the addresses, and those about TLS and authentication."""
        self.security = link_security(properties)
        """How its links are encrypted and authenticate; None for neither."""
        self._bootstrap = str(properties["bootstrap.servers"])
        self._client_id = client_id
        self._answer_timeout_s = answer_timeout_s
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

    def ask_any(self, request: Message, expected: type[M]) -> M:
        """Ask the first broker that answers; it forwards requests for the controller."""
        return self._any().ask(request, expected)

    def metadata(self) -> MetadataResponse:
        """Return all brokers and all topics, as they are now."""
        return self._any().ask(MetadataRequest(topics=None), MetadataResponse)

    def nodes(self) -> list[Node]:
        """Return all brokers."""
        brokers = self.metadata().brokers
        return sorted(Node(each.node_id, each.host, each.port) for each in brokers)

    def coordinator(self, kind: Kind, key: str) -> Node:
        """Return the broker that coordinates a group or a transactional id."""
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
            self._first = self._first_that_answers()
        return self._first

    def _first_that_answers(self) -> Link:
        failure: LinkError | None = None
        for host, port in [split_address(address) for address in self._bootstrap.split(",")]:
            try:
                return self._open(host, port)
            except OSError:
                continue
            except LinkError as error:  # it listens, but another one may answer
                failure = error
        raise failure or LinkError(
            f"No broker answered at {self._bootstrap}; start one, or correct the address"
        )

    def _link_to(self, node: Node) -> Link:
        try:
            return self._open(node.host, node.port)
        except OSError as error:
            raise LinkError(
                f"Broker {node.id} says it is at {node.host}:{node.port}, where no broker answers "
                f"({error.strerror or error}); start it, or correct its advertised address"
            ) from error

    def _open(self, host: str, port: int) -> Link:
        if (host, port) not in self._links:
            self._links[host, port] = Link(
                host, port, self._client_id, self._answer_timeout_s, self.security
            )
        return self._links[host, port]


T = TypeVar("T")


def settled(ask: Callable[[], tuple[int, T]], what: str) -> T:
    """Ask until the code is not a temporary one; raise for any other error."""
    deadline_s = time.monotonic() + RETRY_PATIENCE_S
    while True:
        code, value = ask()
        if code not in NOT_YET or time.monotonic() > deadline_s:
            require(code, what)
            return value
        time.sleep(RETRY_PAUSE_S)


def require(code: int, what: str) -> None:
    """Raise if an answer has an error."""
    if code != ErrorCode.NONE:
        raise RefusedError(what, code, _name(code))


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
