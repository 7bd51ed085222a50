"""The other brokers, as this one asks them.

A request goes out as an `Ask`, in the highest version that this release knows. The connection
learns which versions the other broker serves, and where it does not serve that one, asks for the
same request in another (`Ask.for_versions`): brokers of two releases run side by side while a
cluster is upgraded. The answer comes back decoded. Where none comes the asker hears
`PeerLostError`, and does not know whether the request was carried out.

A broker is found where it registered, a voter that has not registered yet where the settings say.
What is asked of this node itself never leaves it: `local` answers, which handlers fill in.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas.effects import Address, Ask, Effect
from barnabas.metadata.image import Image
from barnabas.model.errors import ApiError, BrokerError, ErrorCode, PeerLostError, WireError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.protocol.apis import APIS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message

KEYS = {facts.request: key for key, facts in APIS.items()}
FETCHES = ("FetchRequest", "FetchSnapshotRequest")
TIMEOUT_MS = 5000

Serve = Callable[[Message], Any]
"""Answers a request: with a message, or with a pending one."""


def voter_addresses(voters: Sequence[str]) -> dict[NodeId, Address]:
    """Return where voters listen, from `id@host:port`."""
    found = {}
    for voter in voters:
        number, _, place = voter.partition("@")
        host, _, port = place.rpartition(":")
        found[NodeId(int(number))] = Address(host.strip("[]"), int(port))
    return found


class Peers:
    """Asks other brokers."""

    def __init__(
        self,
        me: NodeId,
        voters: Sequence[str],
        image: Callable[[], Image],
        outbox: list[Effect],
    ) -> None:
        self.local: Serve = _nobody
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
        """Ask a broker; records in its answer are valid while the answer is heard, and no longer.

        A request to this node itself may be answered before this returns.
        """
        if node_id == self._me:
            return self._ask_local(request)
        address = self.address_of(node_id)
        if address is None:
            return _lost(f"nobody knows where broker {node_id} is")
        return self.ask_at(address, request, lane=lane, timeout_ms=timeout_ms)

    def ask_at(
        self,
        address: Address,
        request: Message,
        *,
        lane: str = "control",
        timeout_ms: int = TIMEOUT_MS,
    ) -> Pending[Any]:
        """Ask whoever listens at an address."""
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
            heard = partial(_heard, address, key, other, answer)
            return Ask(address, lane, key, other, body, timeout_ms, heard)

        body = encoder(type(request), version)(request)
        heard = partial(_heard, address, key, version, answer)
        self._outbox.append(Ask(address, lane, key, version, body, timeout_ms, heard, for_versions))
        return answer

    def ask_voter(
        self,
        address: Address,
        request: Message,
        timeout_ms: int,
        answered: Callable[[Any | None], None],
    ) -> None:
        """Ask for the quorum, which tells no kinds of failure apart: each is None.

        Fetches have a lane of their own, as votes must not wait for the end of a long poll.
        """
        lane = "raft-fetch" if type(request).__name__ in FETCHES else "raft"
        asked = self.ask_at(address, request, lane=lane, timeout_ms=timeout_ms)
        asked.when_done(answered, lambda _: answered(None))

    def pass_on(
        self,
        node_id: NodeId,
        api_key: int,
        api_version: int,
        body: bytes,
        *,
        request: Message,
        timeout_ms: int,
    ) -> Pending[bytes]:
        """Ask a broker what a client asked this one; return the body of its answer.

        Question and answer go through as they are where both brokers serve the client's version.
        Where the other one does not, `request` is written in a version that it serves and its
        answer in the client's; `ApiError` with UNSUPPORTED_VERSION says that there is none.

        Each API has its own lane: some of them take long.
        """
        address = self.address_of(node_id)
        if address is None or node_id == self._me:
            return _lost(f"broker {node_id} cannot be asked from here")
        answer: Pending[bytes] = Pending()

        def heard(content: memoryview | None) -> None:
            if content is None:
                answer.fail(PeerLostError(f"no answer from {address}"))
            else:
                answer.complete(bytes(content))

        lane = f"forward-{api_key}"

        def for_versions(low: int, high: int) -> Ask | None:
            try:
                version = nearest_version(api_key, api_version, low, high)
                other = encoder(type(request), version)(request)
            except ValueError as error:
                problem = f"the controller is of another release: {error}"
                answer.fail(ApiError(ErrorCode.UNSUPPORTED_VERSION, problem))
                return None
            translated: Pending[Any] = Pending()
            encode = encoder(response_class(api_key), api_version)
            translated.when_done(lambda told: answer.complete(encode(told)), answer.fail)
            hear = partial(_heard, address, api_key, version, translated)
            return Ask(address, lane, api_key, version, other, timeout_ms, hear)

        self._outbox.append(
            Ask(address, lane, api_key, api_version, body, timeout_ms, heard, for_versions)
        )
        return answer

    def address_of(self, node_id: NodeId) -> Address | None:
        """Return where a broker listens for others; None where nobody knows."""
        broker = self._image().brokers.get(node_id)
        if broker is not None and broker.peer_port:
            return Address(broker.peer_host, broker.peer_port)
        return self._voters.get(node_id)

    def _ask_local(self, request: Message) -> Pending[Any]:
        try:
            answered = self.local(request)
        except BrokerError as error:
            return _lost(f"this node cannot answer itself: {error}")
        if isinstance(answered, Pending):
            return answered
        answer: Pending[Any] = Pending()
        answer.complete(answered)
        return answer


def nearest_version(api_key: int, wanted: int, low: int, high: int) -> int:
    """Return the served version that is nearest to the wanted one; raise where none is known."""
    facts = APIS[api_key]
    version = max(low, min(wanted, high))
    if high < low or not facts.low <= version <= facts.high:
        served = f"versions {low} to {high}" if low <= high else "no version"
        raise ValueError(
            f"it serves {served} of {facts.name}; this release knows {facts.low} to {facts.high}"
        )
    return version


def _heard(
    address: Address, key: int, version: int, answer: Pending[Any], body: memoryview | None
) -> None:
    """Decode an answer for the asker."""
    if body is None:
        answer.fail(PeerLostError(f"no answer from {address}"))
        return
    try:
        response = decode_exact(response_class(key), version, body)
    except WireError as error:
        answer.fail(PeerLostError(f"no sense in the answer of {address}: {error}"))
    else:
        answer.complete(response)


def _lost(problem: str) -> Pending[Any]:
    answer: Pending[Any] = Pending()
    answer.fail(PeerLostError(problem))
    return answer


def _nobody(_: Message) -> Pending[Any]:
    return _lost("this node does not serve yet")
