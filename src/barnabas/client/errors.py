"""The exceptions of the client, with messages that say what to change.

librdkafka raises one exception class with an error code. Here each code that needs a different
reaction has its own class; all others are plain `ClientError`s with the code.

    BrokerUnreachableError   no broker answers, or not in time; a retry may help
    UnknownTopicError        the topic or partition does not exist
    TopicExistsError         the topic already exists
    RecordTooLargeError      the record is over a limit of the client or the topic
    NotDeliveredError        a record was dropped; it may or may not be in the log
    LockLostError            an acknowledgement came after the lock on its message had ended
    GroupError               the group removed this member, or its coordinator is unreachable
    AuthenticationError      the broker rejected the credentials
    NotAllowedError          the client has no permission
    UnsupportedError         the broker does not support the request
    OffsetOutOfRangeError    the log does not have the consumer's next offset
    SettingError             a setting has an unknown name or an invalid value
    ArgumentError            an argument is invalid
    UsageError               the call is not allowed here: in a callback, from a second thread
    ClosedError              the object was used after `close()`
"""

from confluent_kafka import KafkaError, KafkaException

from barnabas.model.ids import TopicPartition


class ClientError(Exception):
    """The base class of all exceptions; `code` is Kafka's error code, negative for local errors."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class BrokerUnreachableError(ClientError):
    """No broker answered, or not in time."""


class UnknownTopicError(ClientError):
    """The topic or partition does not exist."""


class TopicExistsError(ClientError):
    """The topic already exists."""


class RecordTooLargeError(ClientError):
    """A record is over the client's or the topic's limit."""


class NotDeliveredError(ClientError):
    """A record was dropped. It may still be in the log if only the response was lost."""


class LockLostError(ClientError):
    """Acknowledgements that were not stored, or may not have been: members get these again."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message, code)
        self.offsets: dict[TopicPartition, list[int]] = {}
        """The messages, by partition."""


class GroupError(ClientError):
    """The group removed this member, or its coordinator is unreachable."""


class AuthenticationError(ClientError):
    """The broker rejected the credentials."""


class NotAllowedError(ClientError):
    """The client has no permission for the request."""


class UnsupportedError(ClientError):
    """The broker does not support the request."""


class SettingError(ClientError):
    """A setting has an unknown name or an invalid value."""


class ArgumentError(ClientError, ValueError):
    """An argument of a call is invalid."""


class UsageError(ClientError):
    """The call is not allowed here: in a callback, from a second thread, without an assignment."""


class OffsetOutOfRangeError(ClientError):
    """The log does not have the consumer's next offset."""

    def __init__(self, message: str, code: int, partition: TopicPartition, offset: int) -> None:
        super().__init__(message, code)
        self.partition = partition
        self.offset = offset


class ClosedError(ClientError):
    """The producer or consumer was closed before this call."""


_CLASSES: dict[int, tuple[type[ClientError], str]] = {
    code: (kind, advice)
    for kind, advice, codes in (
        (
            BrokerUnreachableError,
            "check that a broker runs at the bootstrap address",
            (
                KafkaError._TRANSPORT,
                KafkaError._ALL_BROKERS_DOWN,
                KafkaError._RESOLVE,
                KafkaError._TIMED_OUT,
                KafkaError._TIMED_OUT_QUEUE,
                KafkaError.REQUEST_TIMED_OUT,
            ),
        ),
        (
            UnknownTopicError,
            "create the topic, or correct its name or partition",
            (
                KafkaError._UNKNOWN_TOPIC,
                KafkaError._UNKNOWN_PARTITION,
                KafkaError.UNKNOWN_TOPIC_OR_PART,
                KafkaError.UNKNOWN_TOPIC_ID,
            ),
        ),
        (TopicExistsError, "choose another name", (KafkaError.TOPIC_ALREADY_EXISTS,)),
        (
            RecordTooLargeError,
            "send less, or raise message.max.bytes here and max.message.bytes on the topic",
            (KafkaError.MSG_SIZE_TOO_LARGE,),
        ),
        (
            NotDeliveredError,
            "no broker acknowledged the record in time",
            (KafkaError._MSG_TIMED_OUT,),
        ),
        (
            NotDeliveredError,
            "the producer was closed before a broker acknowledged the record",
            (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT),
        ),
        (
            GroupError,
            "the group has rebalanced or its coordinator is unreachable; poll again",
            (
                KafkaError.ILLEGAL_GENERATION,
                KafkaError.UNKNOWN_MEMBER_ID,
                KafkaError.REBALANCE_IN_PROGRESS,
                KafkaError.FENCED_INSTANCE_ID,
                KafkaError._MAX_POLL_EXCEEDED,
                KafkaError._WAIT_COORD,
                KafkaError.COORDINATOR_NOT_AVAILABLE,
                KafkaError.NOT_COORDINATOR,
            ),
        ),
        (
            AuthenticationError,
            "correct sasl.username, sasl.password or the certificates",
            (
                KafkaError._AUTHENTICATION,
                KafkaError.SASL_AUTHENTICATION_FAILED,
                KafkaError.UNSUPPORTED_SASL_MECHANISM,
                KafkaError._SSL,
            ),
        ),
        (
            NotAllowedError,
            "ask for an ACL that allows it",
            (
                KafkaError.TOPIC_AUTHORIZATION_FAILED,
                KafkaError.GROUP_AUTHORIZATION_FAILED,
                KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            ),
        ),
        (
            UnsupportedError,
            "this broker does not support the request",
            (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION),
        ),
        (
            ArgumentError,
            'a topic name has 1 to 249 letters, digits, ".", "_" or "-"',
            (KafkaError.TOPIC_EXCEPTION,),
        ),
        (ArgumentError, "", (KafkaError._INVALID_ARG,)),
        (SettingError, "", (KafkaError._CONFLICT,)),
    )
    for code in codes
}


def from_error(error: KafkaError) -> ClientError:
    """Convert librdkafka's error to the matching exception."""
    kind, advice = _CLASSES.get(error.code(), (ClientError, ""))
    text = str(error.str()) or str(error.name())
    return kind(f"{text}; {advice}" if advice else text, error.code())


def from_exception(exception: KafkaException) -> ClientError:
    """Return the error inside an exception."""
    carried = exception.args[0] if exception.args else None
    if isinstance(carried, KafkaError):
        return from_error(carried)
    return ClientError(str(exception))
