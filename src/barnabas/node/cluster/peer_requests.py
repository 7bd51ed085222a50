"""Requests from this broker to others.

A request leaves as an `Ask`, in the highest version that this release knows. The connection learns
which versions the other broker serves. If that one is not among them, it takes the same request in
another version (`Ask.for_versions`): brokers of two releases run side by side while a cluster is
upgraded. The response is decoded. Without a response the request fails with `PeerLostError`, and
may or may not have been carried out.

The address of a broker is the one it registered with; that of a voter which has not registered yet
is in the settings. A request to this node itself is answered by `local`, which handlers set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from barnabas.effects import Address, Ask, Effect
from barnabas.metadata.image import Image
from barnabas.model.callers import Caller
from barnabas.model.errors import ApiError, BrokerError, ErrorCode, PeerLostError, WireError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, KEYS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.envelopes import VERSION as ENVELOPE_VERSION
from barnabas.protocol.envelopes import read_reply, write_envelope
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.message import Message

FETCHES = ("FetchRequest", "FetchSnapshotRequest")
TIMEOUT_MS = 5000


@dataclass(frozen=True, slots=True)
class ForwardedRequest:
    """A client's request that the controller is to answer."""

    header: RequestHeader
    body: bytes
    request: Message
    """The same as the body, decoded."""
    caller: Caller


Serve = Callable[[Message], Message | Pending[Message]]
"""Answers a request with a message, or with a pending one."""


def voter_addresses(voters: Sequence[str]) -> dict[NodeId, Address]:
    """Return the addresses of voters, from `id@host:port`."""
    found = {}
    for voter in voters:
        number, _, place = voter.partition("@")
        host, _, port = place.rpartition(":")
        found[NodeId(int(number))] = Address(host.strip("[]"), int(port))
    return found


class Peers:
    """Sends requests to other brokers."""

    def __init__(
        self,
        me: NodeId,
        voters: Sequence[str],
        image: Callable[[], Image],
        outbox: list[Effect],
    ) -> None:
        self.local: Serve = _not_serving
        self._me = me
        self._voters = voter_addresses(voters)
        self._image = image
        self._outbox = outbox

    def ask(
        self,
        node_id: NodeId,
        request: Message,
        *,
        lane: str = "control",
        timeout_ms: int = TIMEOUT_MS,
    ) -> Pending[Any]:
        """Send a request to a broker; records in its response are valid during the callback only.

        A request to this node itself may be answered before this returns.
        """
        if node_id == self._me:
            return self._ask_local(request)
        address = self.address_of(node_id)
        if address is None:
            return _lost(f"broker {node_id} has no known address")
        return self.ask_at(address, request, lane=lane, timeout_ms=timeout_ms)

    def ask_at(
        self,
        address: Address,
        request: Message,
        *,
        lane: str = "control",
        timeout_ms: int = TIMEOUT_MS,
    ) -> Pending[Any]:
        """Send a request to the broker at an address."""
        key = KEYS[type(request).__name__]
        answer: Pending[Any] = Pending()

        version = APIS[key].high

        def for_versions(low: int, high: int) -> Ask | None:
            try:
                other = nearest_version(key, version, low, high)
                body = encoder(type(request), other)(request)
            except ValueError as error:  # or the version cannot carry what the request says
                answer.fail(PeerLostError(f"{address} cannot be asked: {error}"))
                return None
            received = partial(_received, address, key, other, answer)
            return Ask(address, lane, key, other, body, timeout_ms, received)

        body = encoder(type(request), version)(request)
        received = partial(_received, address, key, version, answer)
        self._outbox.append(
            Ask(address, lane, key, version, body, timeout_ms, received, for_versions)
        )
        return answer

    def ask_voter(
        self,
        address: Address,
        request: Message,
        timeout_ms: int,
        answered: Callable[[Any | None], None],
    ) -> None:
        """Send a request of the quorum, which treats all failures alike: each is None.

        Fetches have a lane of their own: votes must not wait for the end of a long poll.
        """
        lane = "raft-fetch" if type(request).__name__ in FETCHES else "raft"
        asked = self.ask_at(address, request, lane=lane, timeout_ms=timeout_ms)
        asked.when_done(answered, lambda _: answered(None))

    def forward(
        self,
        node_id: NodeId,
        forwarded: ForwardedRequest,
        timeout_ms: int,
        *,
        needs_envelope: bool = False,
    ) -> Pending[bytes]:
        """Send a client's request to a broker; return the body of its response.

        The request and its response pass unchanged where both brokers serve the client's version.
        Otherwise the request is written in a version that the other broker serves, and its
        response in the client's; `ApiError` with UNSUPPORTED_VERSION says that there is none.

        A broker that serves Envelope also learns who the client is (`protocol/envelopes.py`). With
        `needs_envelope` no other broker gets the request.

        Each API has its own lane: some of them take long.
        """
        address = self.address_of(node_id)
        if address is None or node_id == self._me:
            return _lost(f"broker {node_id} has no known address, or is this broker")
        header, request = forwarded.header, forwarded.request
        api_key, api_version = header.api_key, header.api_version
        answer: Pending[bytes] = Pending()

        def received(content: memoryview | None) -> None:
            if content is None:
                answer.fail(PeerLostError(f"no answer from {address}"))
            else:
                answer.complete(bytes(content))

        ask = partial(
            Ask,
            address=address,
            lane=f"forward-{api_key}",
            api_key=api_key,
            timeout_ms=timeout_ms,
            envelope=partial(_in_envelope, forwarded, answer),
            needs_envelope=needs_envelope,
        )

        def for_versions(low: int, high: int) -> Ask | None:
            try:
                version = nearest_version(api_key, api_version, low, high)
                body = encoder(type(request), version)(request)
            except ValueError as error:
                problem = f"the controller is of another release: {error}"
                answer.fail(ApiError(ErrorCode.UNSUPPORTED_VERSION, problem))
                return None
            translated: Pending[Any] = Pending()
            encode = encoder(response_class(api_key), api_version)
            translated.when_done(lambda response: answer.complete(encode(response)), answer.fail)
            done = partial(_received, address, api_key, version, translated)
            return ask(api_version=version, body=body, done=done)

        self._outbox.append(
            ask(
                api_version=api_version,
                body=forwarded.body,
                done=received,
                for_versions=for_versions,
            )
        )
        return answer

    def address_of(self, node_id: NodeId) -> Address | None:
        """Return the address of a broker for other brokers; None if it is not known."""
        broker = self._image().brokers.get(node_id)
        if broker is not None and broker.peer_port:
            return Address(broker.peer_host, broker.peer_port)
        return self._voters.get(node_id)

    def _ask_local(self, request: Message) -> Pending[Any]:
        try:
            answered = self.local(request)
        except BrokerError as error:
            return _lost(f"this node cannot answer its own request: {error}")
        if isinstance(answered, Pending):
            return answered
        answer: Pending[Any] = Pending()
        answer.complete(answered)
        return answer


def nearest_version(api_key: int, wanted: int, low: int, high: int) -> int:
    """Return the served version that is nearest to the wanted one; raise if none is known."""
    facts = APIS[api_key]
    version = max(low, min(wanted, high))
    if high < low or not facts.low <= version <= facts.high:
        served = f"versions {low} to {high}" if low <= high else "no version"
        raise ValueError(
            f"it serves {served} of {facts.name}; this release knows {facts.low} to {facts.high}"
        )
    return version


def _received(
    address: Address, key: int, version: int, answer: Pending[Any], body: memoryview | None
) -> None:
    """Decode a response."""
    if body is None:
        answer.fail(PeerLostError(f"no answer from {address}"))
        return
    try:
        response = decode_exact(response_class(key), version, body)
    except WireError as error:
        answer.fail(PeerLostError(f"invalid response from {address}: {error}"))
    else:
        answer.complete(response)


def _in_envelope(forwarded: ForwardedRequest, answer: Pending[bytes], ask: Ask) -> Ask:
    """Return a forwarded request, in the version it is sent in, with its client's identity."""
    header = forwarded.header._replace(api_version=ask.api_version)
    body = write_envelope(header, ask.body, forwarded.caller)
    done = partial(_received_envelope, header, answer, ask)
    return replace(ask, api_key=ApiKey.ENVELOPE, api_version=ENVELOPE_VERSION, body=body, done=done)


def _received_envelope(
    header: RequestHeader, answer: Pending[bytes], ask: Ask, reply: memoryview | None
) -> None:
    """Report the response in an envelope; a broker that is not the controller counts as lost."""
    if reply is None:
        ask.done(None)
        return
    try:
        body = read_reply(header, reply)
    except WireError as error:
        answer.fail(PeerLostError(f"invalid response from {ask.address}: {error}"))
        return
    if not isinstance(body, ErrorCode):
        ask.done(body)
    elif body is ErrorCode.NOT_CONTROLLER:
        ask.done(None)
    else:
        problem = f"the controller refused the envelope with {body.name}"
        answer.fail(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, problem))


def _lost(problem: str) -> Pending[Any]:
    answer: Pending[Any] = Pending()
    answer.fail(PeerLostError(problem))
    return answer


def _not_serving(_: Message) -> Pending[Any]:
    return _lost("this node does not serve yet")
