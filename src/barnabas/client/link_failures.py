"""Convert failures of our own connections to the client's exceptions."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError

from barnabas.client.errors import (
    AuthenticationError,
    BrokerUnreachableError,
    ClientError,
    GroupError,
    SettingError,
    UnsupportedError,
    from_error,
)
from barnabas.model.errors import ErrorCode
from barnabas.wire.wire_failures import (
    DemandError,
    LinkError,
    LoginError,
    RefusedError,
    UnservedError,
    UnsupportedPropertyError,
)

OTHER_GROUP = (
    "consumers use this group already; a queue needs a group of its own: pass another group=..."
)
ADVICE = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: OTHER_GROUP,
    ErrorCode.GROUP_ID_NOT_FOUND: OTHER_GROUP,
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group has as many members as the broker allows; stop "
    "some, or raise group.share.max.size",
    ErrorCode.NON_EMPTY_GROUP: "the group has members; stop them first",
}
_CLASSES: tuple[tuple[type[LinkError], type[ClientError]], ...] = (
    (UnservedError, UnsupportedError),
    (UnsupportedPropertyError, SettingError),
    (LoginError, AuthenticationError),
    (DemandError, AuthenticationError),
)


def from_link_error(error: LinkError) -> ClientError:
    """Return the matching exception of the client."""
    if isinstance(error, RefusedError):
        advice = ADVICE.get(ErrorCode(error.code))
        if advice is not None:
            return GroupError(f"{error.what}: {advice}", error.code)
        found = from_error(KafkaError(error.code))
        return type(found)(f"{error.what}: {found}", error.code)
    kind = next((ours for theirs, ours in _CLASSES if isinstance(error, theirs)), None)
    return (kind or BrokerUnreachableError)(str(error))


@contextmanager
def converted() -> Iterator[None]:
    """Raise the client's exception for each failure of a connection inside the block."""
    try:
        yield
    except LinkError as error:
        raise from_link_error(error) from error
