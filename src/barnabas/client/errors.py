"""What a client can be told, as types to catch and sentences that say what to change.

librdkafka reports everything as one exception with a number. Here each number that calls for a
different reaction has its own class; the rest are plain `ClientError`s that keep the number.

    BrokerUnreachableError   nobody answers, or not in time; trying again later may help
    UnknownTopicError        the topic or partition is not there
    TopicExistsError         the topic is there already
    RecordTooLargeError      the record is over a limit of the client or the topic
    NotDeliveredError        a record was given up on; it may or may not be in the log
    GroupError               the group moved on without this member, or cannot be reached
    AuthenticationError      the broker does not know who we are
    NotAllowedError          it knows, and says no
    UnsupportedError         this broker does not serve what was asked
    OffsetOutOfRangeError    the log does not have the offset that a consumer wants to read
    SettingError             a setting has a name or value that does not exist
    ArgumentError            a call was given a wrong word, number or type
    UsageError               the call cannot be made here: in a callback, by a second thread
    ClosedError              the object was used after `close()`
"""

from confluent_kafka import KafkaError, KafkaException

from barnabas.model.ids import TopicPartition


class ClientError(Exception):
    """The root of what this package raises; `code` is Kafka's number, negative for local ones."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class BrokerUnreachableError(ClientError):
    """No broker answered, or not in time."""


class UnknownTopicError(ClientError):
    """There is no such topic or partition."""


class TopicExistsError(ClientError):
    """There is such a topic already."""


class RecordTooLargeError(ClientError):
    """A record is over the client's or the topic's limit."""


class NotDeliveredError(ClientError):
    """A record was given up on. It may still be in the log if only the answer was lost."""


class GroupError(ClientError):
    """The consumer group moved on without this member, or its coordinator is out of reach."""


class AuthenticationError(ClientError):
    """The broker does not accept who we say we are."""


class NotAllowedError(ClientError):
    """The broker knows us and refuses."""


class UnsupportedError(ClientError):
    """The broker does not serve what was asked for."""


class SettingError(ClientError):
    """A setting's name or value does not exist."""


class ArgumentError(ClientError, ValueError):
    """A call was given a wrong word, number or type."""


class UsageError(ClientError):
    """The call cannot be made here: in a callback, by a second thread, for what is not assigned."""


class OffsetOutOfRangeError(ClientError):
    """The log does not have the offset that the consumer wants to read next."""

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
        (TopicExistsError, "pick another name", (KafkaError.TOPIC_ALREADY_EXISTS,)),
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
            "the group has rebalanced or its coordinator is away; poll again",
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
            "this broker does not serve the call",
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
    """Turn librdkafka's error into the class that says how to react."""
    kind, advice = _CLASSES.get(error.code(), (ClientError, ""))
    text = str(error.str()) or str(error.name())
    return kind(f"{text}; {advice}" if advice else text, error.code())


def from_exception(exception: KafkaException) -> ClientError:
    """Unwrap the error that a raised exception carries."""
    carried = exception.args[0] if exception.args else None
    if isinstance(carried, KafkaError):
        return from_error(carried)
    return ClientError(str(exception))
