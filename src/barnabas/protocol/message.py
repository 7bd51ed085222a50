"""What every generated message has in common.

A message class carries its wire facts as strings, one a field, in wire order:

    "<attribute> <type> <versions> [nullable=<versions>] [default=<value>]
     [tag=<number> tagged=<versions>] [flexible=none] [ignorable]"

A type is one of Kafka's scalars or the name of another class of the same module, with `[]`
in front for an array. Strings are constants, so that importing a module of messages costs
next to nothing; `fields.py` reads them when a codec is first needed.
"""

from typing import Any, ClassVar, NamedTuple

from barnabas.model.ports import Buffer

NEVER = 32767
"""The first flexible version of a message that has none."""

FRESH: Any = object()
"""The default of a list or struct: a new one for each message."""

Records = Buffer
"""Record batches, passed through unread; a view of the frame where the frame is one."""


class Encoded(list[Any]):
    """The elements of a message's array, each encoded already.

    An encoder takes it in the place of an array of structs, where the array is a field of the
    message itself: a large answer can then be encoded piece by piece.
    """


class Message:
    """A request, a response, a header, a stored record, or a part of one."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]  # messages are mutable

    FIELDS: ClassVar[tuple[str, ...]] = ()
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{self.__class__.__name__}({values})"


class ApiFacts(NamedTuple):
    """What the protocol says of one API, whatever this broker serves of it."""

    name: str
    module: str
    request: str
    response: str
    low: int
    high: int
    flexible_from: int
    unstable: bool
    """Whether the highest version may still change."""
    listeners: tuple[str, ...]


class RecordFacts(NamedTuple):
    """Where the key and the value of a coordinator's record are defined."""

    module: str
    key: str
    value: str
