"""The base class of all generated messages, and how their classes declare fields.

A class has one line for each field, in wire order. The line holds the Python type and the wire
facts:

    protocols: list[JoinGroupRequestProtocol] = field("[]JoinGroupRequestProtocol 0+")

The facts are a string:

    "<type> <versions> [nullable=<versions>] [default=<value>]
     [tag=<number> tagged=<versions>] [flexible=none] [ignorable]"

A type is one of Kafka's scalars or the name of another class of the same module, with `[]`
in front for an array. Strings are constants, so that importing a module of messages is cheap;
`fields.py` reads them when a codec or a constructor is first needed.
"""

from typing import Any, ClassVar, NamedTuple, dataclass_transform

from barnabas.model.ports import Buffer

SECRETS = frozenset({"auth_bytes", "salted_password", "hmac"})
"""Fields that a representation does not show: passwords, and what stands for them."""
NEVER = 32767
"""The first flexible version of a message that has none."""

Records = Buffer
"""Record batches, which the codec does not parse; a view of the frame if the frame is a view."""


def field(facts: str) -> Any:  # noqa: ANN401 - the annotation of the field is its type
    """Declare a field of a message by its wire facts."""
    return facts


class Encoded(list[Any]):
    """The already encoded elements of an array.

    An encoder accepts it in place of an array of structs if the array is a field of the message
    itself, so that a large response can be encoded piece by piece.
    """


@dataclass_transform(kw_only_default=True, eq_default=False)
class MessageType(type):
    """Turns the declared fields of a class into `FIELDS` and slots."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]
    ) -> "MessageType":
        """Make the class; every attribute that holds a string is a field."""
        fields = {
            key: value
            for key, value in namespace.items()
            if value.__class__ is str and key[0] != "_"
        }
        for key in fields:
            del namespace[key]
        namespace["__slots__"] = tuple(fields)
        namespace["FIELDS"] = fields
        return type.__new__(cls, name, bases, namespace)


class Message(metaclass=MessageType):
    """A request, a response, a header, a stored record, or a part of one."""

    __slots__: ClassVar[tuple[str, ...]] = ()
    __hash__ = None  # type: ignore[assignment]  # messages are mutable

    FIELDS: ClassVar[dict[str, str]] = {}
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - any field of any class
        # Compiling all constructors at import would take 20 ms; a start needs about ten of them.
        from barnabas.protocol.constructing import constructor  # noqa: PLC0415 - it imports us

        cls = type(self)
        cls.__init__ = constructor(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        values = ", ".join(
            f"{name}={'(hidden)' if name in SECRETS else repr(getattr(self, name))}"
            for name in self.__slots__
        )
        return f"{self.__class__.__name__}({values})"


class ApiFacts(NamedTuple):
    """The definition of one API in the protocol; this broker may serve fewer versions."""

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
    """The module and the classes of the key and the value of a coordinator record."""

    module: str
    key: str
    value: str
