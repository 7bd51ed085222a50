"""The list of intended differences, each with the sentence of docs/compatibility.md that explains
it.

A defect does not belong here, nor a difference of a single dialogue: fix it.
"""

from collections.abc import Callable
from typing import Any

from barnabas.model.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.records import HEADER_BYTES, BatchHeader, parse_header
from tools.compat_diff.comparing import ABSENT, Found
from tools.compat_diff.explaining import Explained
from tools.compat_diff.steps import CLOSED, SILENCE

BROKER, BROKER_LOGGER = 4, 8


def only_kafka(found: Found, _: Message | None) -> bool:
    """Return whether Barnabas leaves an entry out."""
    return found.barnabas == ABSENT


def names_twice(found: Found, request: Message | None) -> bool:
    """Return whether an array of the request has duplicates, or a topic without partitions."""
    del found
    return request is not None and _repeats(request)


STRICT = ("configs", "broker_ids", "replicas", "assignments")
"""Arrays in which both brokers must refuse duplicates."""


def _repeats(message: Message) -> bool:
    for name in message.__slots__:
        value = getattr(message, name)
        parts = value if isinstance(value, list) else [value]
        if isinstance(value, list) and name not in STRICT and has_duplicates(value):
            return True
        if name in ("partitions", "partition_indexes", "partition_data") and value == []:
            return True
        if any(isinstance(part, Message) and _repeats(part) for part in parts):
            return True
    return False


NAMES = (
    "topic_id",
    "name",
    "topic",
    "group_id",
    "resource_name",
    "transactional_id",
    "path",
    "producer_id",
)
PLACES = ("partition_index", "partition", "index")


def has_duplicates(values: list[Any]) -> bool:
    """Return whether two entries have the same identity."""
    seen: list[object] = []
    for value in values:
        named: object = value
        if isinstance(value, Message):
            fields = [n for n in (*NAMES, *PLACES) if n in value.__slots__]
            if "transactional_id" in fields:
                fields = ["transactional_id"]
            named = [getattr(value, field) for field in fields] or None
        if named is not None and named in seen:
            return True
        seen.append(named)
    return False


def has_batch(request: Message | None, test: Callable[[bytes, BatchHeader], bool]) -> bool:
    """Return whether a request has a batch for which a test is true."""
    return any(
        test(bytes(partition.records), parse_header(bytes(partition.records)))
        for topic in getattr(request, "topic_data", [])
        for partition in topic.partition_data
        if partition.records is not None and len(partition.records) >= HEADER_BYTES
    )


def is_odd_length(records: bytes, header: BatchHeader) -> bool:
    """Return whether the length in a batch differs from its bytes."""
    return header.size != len(records)


def is_sound(records: bytes, header: BatchHeader) -> bool:
    """Return whether the header of a producer's batch is valid."""
    counted = header.record_count == header.last_offset_delta + 1
    return header.size == len(records) and counted and not header.is_control


def has_no_producer(records: bytes, header: BatchHeader) -> bool:
    """Return whether a transactional batch has no producer."""
    del records
    return header.is_transactional and header.producer_id < 0


def names_odd_kind(request: Message | None) -> bool:
    """Return whether a request names a kind of resource that never has configs."""
    resources = getattr(request, "resources", None) or []
    return any(one.resource_type not in (2, 4, 8, 16, 32) for one in resources)


def has_odd_config(request: Message | None) -> bool:
    """Return whether a request sets an internal config, or one of a broker."""
    topics = getattr(request, "topics", None) or []
    named = [entry.name for topic in topics for entry in getattr(topic, "configs", [])]
    internal = any(name.startswith("internal.") for name in named)
    return internal or bool(asks_for(BROKER)(Found("", 0, 0), request))


def asks_for(*kinds: int) -> Any:  # noqa: ANN401 - a test, as `Explained.when` takes it
    """Return a test: whether a request is about resources of these kinds only."""

    def test(found: Found, request: Message | None) -> bool:
        del found
        resources = getattr(request, "resources", None) or []
        return bool(resources) and all(one.resource_type in kinds for one in resources)

    return test


def between(kafka: object, barnabas: object) -> Any:  # noqa: ANN401 - as above
    """Return a test: whether these two values differ."""
    return lambda found, _: (found.kafka, found.barnabas) == (kafka, barnabas)


def config_is(*names: str) -> Any:  # noqa: ANN401 - as above
    """Return a test: whether an entry that only one broker has is one of these configs."""
    return lambda found, _: any(
        f"name={name!r}" in f"{found.kafka}{found.barnabas}" for name in names
    )


CONFIG_PATHS = r"(topics|results)\[\]\.configs\[\]"
SILENT = "Where Kafka answers UNKNOWN_SERVER_ERROR or does not answer at all"
TWICE = "A request that names the same topic, partition, group or id twice"
OWN_CONFIGS = "DescribeConfigs of a broker lists its own configs and those of Kafka that tools read"
REFUSED_CONFIGS = (
    "internal configs and configs that it does not know itself are refused with INVALID_CONFIG"
)
NO_CONFIGS = "Loggers have no configs"
HEADER_ONLY = (
    "Batches are checked by their header and checksum. The broker reads the records inside only"
)
LENGTHS = "A batch whose length does not fit its bytes is refused with INVALID_RECORD"
BY_ID = "Metadata finds topics by their ids from version 10 on; Kafka from 12 on"
ADVERTISED = "Only APIs and features that are served are advertised"
ANSWERED = "The answer to a batch that was refused names no log start offset"
PARTITION_PATH = r"responses\[\]\.partition_responses\[\]"


TABLE: tuple[Explained, ...] = (
    Explained(
        "A request that is wrong in several ways is refused with one of the errors that fit",
        ".*",
        r".*error_code",
        lambda found, _: found.kafka != 0 and found.barnabas != 0,
        drawn_only=True,
    ),
    Explained(
        SILENT,
        ".*",
        r".*error_code",
        lambda found, _: found.kafka == ErrorCode.UNKNOWN_SERVER_ERROR,
        diverges=True,
    ),
    Explained(SILENT, ".*", r"\(outcome\)", lambda found, _: found.kafka == SILENCE, diverges=True),
    Explained(SILENT, "Fetch", ".*", lambda _, request: getattr(request, "max_bytes", 0) < 0),
    Explained(SILENT, "DescribeTopicPartitions", ".*", lambda _, request: names_nothing(request)),
    Explained(
        "A topic that is made on demand is in the first Metadata answer",
        "Metadata",
        r"topics\[\]\.error_code",
        lambda found, _: (
            found.kafka in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
            and found.barnabas == 0
        ),
    ),
    Explained(
        BY_ID, "Metadata", ".*", versions=range(10, 12), when=lambda _, request: by_id(request)
    ),
    Explained(
        BY_ID,
        "Metadata",
        "topics.*|brokers.*|c.*",
        lambda _, request: nameless(request),
        range(10, 14),
    ),
    Explained(
        "names and ids may stand side by side",
        "Metadata",
        ".*",
        lambda _, request: mixes_names_and_ids(request),
        range(12, 14),
    ),
    Explained(ADVERTISED, "ApiVersions", r"(api_keys|.*_features)\[\+\]", only_kafka),
    Explained(
        "The feature `barnabas.version` takes the place of Kafka's `metadata.version`",
        "ApiVersions",
        r".*_features\[\+\]",
        lambda found, _: "barnabas.version" in str(found.barnabas),
    ),
    Explained(
        "Topics have the config `flush`", ".*", r".*configs\[\+\]", config_is("flush", "log.flush")
    ),
    Explained(
        "Topics and groups have the configs of dead letters",
        ".*",
        r".*configs\[\+\]",
        lambda found, _: "errors.deadletterqueue." in f"{found.kafka}{found.barnabas}",
    ),
    Explained(
        "groups have `share.retry.backoff.ms`",
        ".*",
        r".*configs\[\+\]",
        config_is("share.retry.backoff.ms", "share.retry.backoff.max.ms"),
    ),
    Explained(
        "acquired records with the same delivery count are one run",
        "ShareFetch",
        r"responses\[\]\.partitions\[\]\.acquired_records\[(\+\]|\]\.last_offset)",
        lambda found, _: found.barnabas == ABSENT or found.path.endswith("last_offset"),
    ),
    Explained(
        "`flush.ms` is one second",
        ".*",
        CONFIG_PATHS + r"\..*value",
        between(str(2**63 - 1), "1000"),
    ),
    Explained(
        "Kafka 4.3 stores `min.insync.replicas` as a default of all brokers",
        ".*",
        CONFIG_PATHS + r"\.(config_source|synonyms.*source)",
        between(3, 5),
    ),
    Explained(
        "Kafka 4.3 stores `min.insync.replicas` as a default of all brokers",
        ".*",
        CONFIG_PATHS + r"\.synonyms\[\+\]",
        config_is("min.insync.replicas"),
    ),
    Explained(OWN_CONFIGS, "DescribeConfigs", r"results\[\]\.configs.*", asks_for(BROKER)),
    Explained(NO_CONFIGS, ".*Configs", ".*", asks_for(BROKER_LOGGER)),
    Explained(
        NO_CONFIGS,
        "ListConfigResources",
        r"config_resources\[\+\]",
        lambda found, _: str(found.kafka).startswith(f"resource_type={BROKER_LOGGER}"),
    ),
    Explained(
        REFUSED_CONFIGS,
        ".*",
        r".*error_code",
        lambda found, request: (
            found[1:] == (0, ErrorCode.INVALID_CONFIG) and has_odd_config(request)
        ),
        diverges=True,
    ),
    Explained(
        "a kind of resource that there is not is refused for that resource alone",
        "DescribeConfigs",
        r"results\[\]\.error_code",
        lambda found, request: (
            found[1:] == (ErrorCode.INVALID_REQUEST, 0) and names_odd_kind(request)
        ),
    ),
    Explained(
        "Configs that mean nothing here, such as numbers of threads, are kept and not checked",
        "IncrementalAlterConfigs",
        r".*error_code",
        lambda found, request: found.barnabas == 0 and asks_for(BROKER)(found, request),
    ),
    Explained(
        "A default of the broker is listed for every config of a topic",
        "DescribeConfigs",
        CONFIG_PATHS + r"\.synonyms\[\+\]",
        lambda found, _: found.kafka == ABSENT,
    ),
    Explained(
        "LeaveGroup for static members of `consumer` groups",
        "LeaveGroup",
        r"members\[\]\.error_code",
        between(0, ErrorCode.UNKNOWN_MEMBER_ID),
        diverges=True,
    ),
    Explained(TWICE, ".*", ".*", names_twice, diverges=True),
    Explained(
        "Batches of message formats 0 and 1 are refused with",
        "Produce",
        r".*error_code",
        lambda found, _: found.barnabas == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ),
    Explained(
        LENGTHS,
        "Produce",
        r".*error_code",
        lambda found, request: (
            found.barnabas == ErrorCode.INVALID_RECORD and has_batch(request, is_odd_length)
        ),
        diverges=True,
    ),
    Explained(
        HEADER_ONLY,
        "Produce",
        r".*error_code",
        lambda found, request: (
            found[1:] == (ErrorCode.INVALID_RECORD, 0) and has_batch(request, is_sound)
        ),
        diverges=True,
    ),
    Explained(
        "A transactional batch without a producer id is refused",
        "Produce",
        r".*error_code",
        lambda found, request: (
            found[1:] == (0, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            and has_batch(request, has_no_producer)
        ),
        diverges=True,
    ),
    Explained(ANSWERED, "Produce", PARTITION_PATH + r"\.log_start_offset", between(0, -1)),
    Explained(
        ANSWERED,
        "Produce",
        PARTITION_PATH + r"\.log_append_time_ms",
        lambda found, _: found.barnabas == -1,
    ),
    Explained(
        "A fetch that names no partition opens no session",
        "Fetch",
        "session_id",
        lambda found, request: found.barnabas == 0 and not getattr(request, "topics", None),
        diverges=True,
    ),
    Explained(
        "A consumer that has read an epoch newer than those of the log gets the end of the log",
        "Fetch",
        r"responses\[\]\.partitions\[\]\.error_code",
        between(ErrorCode.OFFSET_OUT_OF_RANGE, 0),
    ),
    Explained(
        "is asked to send its next heartbeat after 200 ms",
        "ConsumerGroupHeartbeat",
        "heartbeat_interval_ms",
        between(5000, 200),
    ),
    Explained(
        "members get a heartbeat interval of 200 ms",
        "ShareGroupHeartbeat",
        "heartbeat_interval_ms",
        between(5000, 200),
    ),
    Explained(
        "A member that sends its previous epoch gets its assignment again",
        "ShareGroupHeartbeat",
        "assignment",
        lambda found, _: found.kafka is None,
    ),
    Explained(
        "The lag of a share group is never negative",
        "DescribeShareGroupOffsets",
        r"groups\[\]\.topics\[\]\.partitions\[\]\.lag",
        lambda found, _: isinstance(found.kafka, int) and found.kafka < 0 == found.barnabas,
    ),
    Explained(
        "A regular expression is matched within the heartbeat that brings it",
        "ConsumerGroup.*",
        ".*",
        lambda _, request: bool(getattr(request, "subscribed_topic_regex", None)),
        diverges=True,
    ),
    Explained(
        "online migration of a group between the protocols",
        "JoinGroup",
        "error_code",
        lambda found, _: (
            found.barnabas == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            and found.kafka in (0, ErrorCode.MEMBER_ID_REQUIRED)
        ),
        diverges=True,
    ),
    Explained(
        "A classic member that is not allowed to join leaves no group behind",
        "DescribeGroups",
        r"groups\[\]\.group_state",
        between("Empty", "Dead"),
    ),
    Explained(
        "The partition of an internal topic that holds a group or a transactional id",
        "DescribeTransactions",
        r"transaction_states\[\]\.topics\[\]\.partitions",
    ),
    Explained(
        "A frame with a length below -1 or with text that is not UTF-8 closes the connection",
        ".*",
        r"\(outcome\)",
        lambda found, request: found.barnabas == CLOSED and request is None,
    ),
)


def by_id(request: Message | None) -> bool:
    """Return whether a request identifies topics by their ids."""
    topics = getattr(request, "topics", None) or []
    return any(topic.topic_id != bytes(16) or topic.name is None for topic in topics)


def names_nothing(request: Message | None) -> bool:
    """Return whether the name of a topic is empty."""
    topics = getattr(request, "topics", None) or []
    return any(topic.name == "" for topic in topics)


def mixes_names_and_ids(request: Message | None) -> bool:
    """Return whether a request identifies topics by name and by id at once."""
    topics = getattr(request, "topics", None) or []
    named = any(topic.name is not None for topic in topics)
    return named and any(topic.topic_id != bytes(16) for topic in topics)


def nameless(request: Message | None) -> bool:
    """Return whether a request identifies a topic by neither name nor id."""
    topics = getattr(request, "topics", None) or []
    return any(topic.topic_id == bytes(16) and topic.name is None for topic in topics)
