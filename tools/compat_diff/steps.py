"""The steps of a dialogue: the requests it yields, and the responses it receives.

    def create_and_describe(scene: Scene) -> Talk:
        answer = yield Ask(CreateTopicsRequest(...), 7)
        topic_id = answer.first("topic_id")
        yield Ask(MetadataRequest(...), 13)

A dialogue runs once per broker. It must send the same requests to both: draws come from the scene,
and only ids come from responses.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from random import Random
from typing import Any

from barnabas.protocol.apis import KEYS
from barnabas.protocol.message import Message
from barnabas.testing.raw_client import frame_of

MAIN = "main"
CLOSED = "the connection was closed"
SILENCE = "no answer"
UNREADABLE = "an answer that our codec cannot read"


@dataclass(frozen=True)
class Ask:
    """A request on one of the dialogue's connections."""

    request: Message
    version: int
    connection: str = MAIN
    held: bool = False
    """Whether the response is left unread until an `Await`: it may wait for another request."""

    @property
    def api_key(self) -> int:
        """The API of the request."""
        return KEYS[type(self.request).__name__]

    @property
    def frame(self) -> bytes:
        """The request as bytes, without its length."""
        return frame_of(self.request, self.version)


@dataclass(frozen=True)
class Raw:
    """A frame that no codec would write; the API and version say how to decode the response."""

    api_key: int
    version: int
    frame: bytes
    connection: str = MAIN
    held: bool = False

    @property
    def request(self) -> None:
        """There is no message to show."""


@dataclass(frozen=True)
class Await:
    """Read the response to a held request."""

    connection: str


@dataclass(frozen=True)
class Pause:
    """Let time pass, so that both brokers do their background work."""

    milliseconds: int


Step = Ask | Raw | Await | Pause


@dataclass(frozen=True)
class Answer:
    """A response: a message, or a word for what happened instead."""

    message: Message | None
    outcome: str = ""

    def first(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - any field of any message
        """Return the first field of this name, at any depth."""
        found = None if self.message is None else find(self.message, name)
        return default if found is None else found


def find(message: Message, name: str) -> Any:  # noqa: ANN401 - any field of any message
    """Look for a field in a message and in its parts."""
    if name in message.__slots__:
        return getattr(message, name)
    for field in message.__slots__:
        value = getattr(message, field)
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            found = find(part, name) if isinstance(part, Message) else None
            if found is not None:
                return found
    return None


BYTES_SHOWN = 24


def brief(value: object) -> str:
    """Format a request for readers; fields with default values are left out."""
    if isinstance(value, Message):
        default = type(value)()
        said = [
            f"{name}={brief(getattr(value, name))}"
            for name in value.__slots__
            if getattr(value, name) != getattr(default, name)
        ]
        return f"{type(value).__name__}({', '.join(said)})"
    if isinstance(value, list):
        return f"[{', '.join(brief(entry) for entry in value)}]"
    if isinstance(value, bytes) and len(value) > BYTES_SHOWN:
        return f"{value[:BYTES_SHOWN].hex()}... ({len(value)} bytes)"
    return value.hex() if isinstance(value, bytes) and len(value) == 16 else repr(value)


@dataclass(frozen=True)
class Scene:
    """The names and the random generator of a dialogue."""

    number: int
    seed: int
    run: int = 0
    """Another number for every run, since a broker remembers the names of the last one."""

    @property
    def prefix(self) -> str:
        """The prefix of every name, so that dialogues do not affect each other."""
        return f"cd{self.run}.{self.number}-"

    def name(self, word: str) -> str:
        """Return a topic, group or transactional id of this dialogue."""
        return f"{self.prefix}{word}"

    def chance(self) -> Random:
        """Return a random generator that is the same for both brokers."""
        return Random(f"{self.seed}/{self.number}")


Talk = Generator[Step, Answer, None]
Dialogue = Callable[[Scene], Talk]
