"""One broker in a dialogue: named connections, requests out, responses in.

A broker may close a connection instead of responding, or not respond at all; both are results. A
closed connection is reopened for the next request.
"""

import time
from collections.abc import Iterator

from barnabas.model.errors import WireError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, response_class
from barnabas.protocol.codec import decoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.testing.raw_client import RawClient, frame_of, framed
from tools.compat_diff.comparing import ERRORS
from tools.compat_diff.steps import CLOSED, SILENCE, UNREADABLE, Answer, Ask, Raw

PATIENCE_S = 12.0
AGAIN_AFTER_S = 0.02
AGAIN_FOR_S = 2.0
PASSING = {14, 15, 51}
"""Errors of a coordinator that is loading: a client retries, and so does a side."""
KEPT = {"JoinGroupRequest"}
"""Requests that must not be repeated: each would add another member."""
UNANSWERED = Answer(None, "no answer, as it should be")

Request = Ask | Raw


class Side:
    """The connections of one dialogue to one broker."""

    def __init__(self, address: tuple[str, int], patience_s: float = PATIENCE_S) -> None:
        self.address = address
        self._patience_s = patience_s
        self._connections: dict[str, RawClient] = {}
        self._asked: dict[str, Request] = {}

    def send(self, step: Request) -> None:
        """Send a request; `receive` returns its response."""
        self._asked[step.connection] = step
        content = framed(step.frame)
        if expects_nothing(step):
            content += framed(frame_of(ApiVersionsRequest(), 0))
        for attempt in (1, 2):
            try:
                self._connection(step.connection).send(content)
            except (OSError, EOFError):
                self._drop(step.connection)
                if attempt == 2:
                    return
            else:
                return

    def receive(self, connection: str) -> Answer:
        """Return the response to the last request of a connection."""
        step = self._asked.pop(connection)
        answer = self._read(step)
        deadline = time.monotonic() + AGAIN_FOR_S
        while is_passing(step, answer) and time.monotonic() < deadline:
            time.sleep(AGAIN_AFTER_S)
            self.send(step)
            self._asked.pop(connection, None)
            answer = self._read(step)
        return answer

    def ask(self, step: Request) -> Answer:
        """Send a request and return its response."""
        self.send(step)
        return self.receive(step.connection)

    def close(self) -> None:
        """Close every connection."""
        for name in list(self._connections):
            self._drop(name)

    def _connection(self, name: str) -> RawClient:
        if name not in self._connections:
            self._connections[name] = RawClient(self.address, self._patience_s)
        return self._connections[name]

    def _drop(self, name: str) -> None:
        client = self._connections.pop(name, None)
        if client is not None:
            client.close()

    def _read(self, step: Request) -> Answer:
        client = self._connections.get(step.connection)
        if client is None:
            return Answer(None, CLOSED)
        try:
            frame = client.receive_frame()
        except TimeoutError:
            self._drop(step.connection)
            return Answer(None, SILENCE)
        except (OSError, EOFError):
            self._drop(step.connection)
            return Answer(None, CLOSED)
        return UNANSWERED if expects_nothing(step) else read_answer(step, frame)


def expects_nothing(step: Request) -> bool:
    """Return whether a request has no response; the next one shows whether it was accepted."""
    return isinstance(step.request, ProduceRequest) and step.request.acks == 0


def read_answer(step: Request, frame: bytes) -> Answer:
    """Decode a response; ApiVersions answers an unknown version in the form of version 0."""
    if step.api_key not in APIS or step.version not in versions_of(step.api_key):
        return Answer(None, UNREADABLE)
    cls, version = response_class(step.api_key), step.version
    if step.api_key == ApiKey.API_VERSIONS and version > APIS[ApiKey.API_VERSIONS].high:
        version = 0
    flexible = version >= APIS[step.api_key].flexible_from and step.api_key != ApiKey.API_VERSIONS
    try:
        message, end = decoder(cls, version)(frame, 5 if flexible else 4)
    except WireError:
        return Answer(None, UNREADABLE)
    return Answer(message) if end == len(frame) else Answer(None, UNREADABLE)


def versions_of(api_key: int) -> range:
    """Return the versions whose responses can be decoded."""
    facts = APIS[api_key]
    return range(facts.low, 100 if api_key == ApiKey.API_VERSIONS else facts.high + 1)


def is_passing(step: Request, answer: Answer) -> bool:
    """Return whether the same request may get another response in a moment."""
    if answer.message is None or type(step.request).__name__ in KEPT:
        return False
    return any(code in PASSING for code in error_codes(answer.message))


def error_codes(message: Message) -> Iterator[int]:
    """Return every error code of a response."""
    for name in message.__slots__:
        value = getattr(message, name)
        if name in ERRORS:
            yield value
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Message):
                yield from error_codes(part)
