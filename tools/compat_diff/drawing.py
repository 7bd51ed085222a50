"""Generates dialogues from a seed: requests whose fields are valid, nearly valid, or invalid.

Every choice comes from the scene's random generator, so that both brokers get the same requests and
a seed gives the same dialogue again. A field is filled by its name (`POOLS`): an existing topic, a
missing one, null, empty, a duplicate. Ids that the brokers have chosen have names in the draw, and
are looked up in each broker's responses (`Known`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from barnabas.handlers.registry import SERVED
from barnabas.protocol.apis import APIS, request_class
from barnabas.protocol.compression import Codec
from barnabas.protocol.fields import Field, fields_at
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.protocol.records import TRANSACTIONAL
from tests.support.talk.requests import batch
from tools.compat_diff.comparing import UNKNOWN_ID
from tools.compat_diff.dialogues.asking import (
    START_MS,
    create,
    init_producer,
    produce,
    topic,
)
from tools.compat_diff.dialogues.groups import join, sync
from tools.compat_diff.explained import has_duplicates
from tools.compat_diff.steps import Answer, Ask, Scene, Talk, find

DRAWN_STEPS = 25
"""Requests of one dialogue, after those that prepare the scene."""
LEFT_OUT = {
    "UnregisterBroker",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "SaslHandshake",
    "SaslAuthenticate",
    "UpdateFeatures",
    "JoinGroup",
    "CreateAcls",
    "DeleteAcls",
    "AlterClientQuotas",
    "AlterUserScramCredentials",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
}
"""Requests that could end the broker or the connection, or change the cluster permanently or for
other dialogues; and joins, whose waiting is a race.
"""
SELDOM = {
    "ElectLeaders",
    "DescribeLogDirs",
    "SyncGroup",
    "ApiVersions",
    "DescribeConfigs",
}
OFTEN = {
    "Produce",
    "Fetch",
    "ListOffsets",
    "CreateTopics",
    "OffsetCommit",
    "OffsetFetch",
    "ConsumerGroupHeartbeat",
}
TWINS = 0.02
"""The fraction of arrays that may have duplicates."""
CONFIGS = (
    "retention.ms",
    "cleanup.policy",
    "flush.ms",
    "no.such.config",
    "min.insync.replicas",
    "",
)
CONFIG_VALUES = ("1000", "-1", "compact", "delete", "soon", "", "1")


@dataclass
class Known:
    """The responses of one broker so far, by the name that the draw uses."""

    ids: dict[str, Any] = field(default_factory=dict)

    def take(self, request: Message, answer: Answer) -> None:
        """Keep the ids of a response."""
        message = answer.message
        if message is None or answer.first("error_code", 0) not in (0, 79):
            return
        for name in ("producer_id", "producer_epoch", "member_id", "member_epoch", "session_id"):
            value = find(message, name)
            if name in message.__slots__ and value not in (None, "", -1, 0):
                self.ids[name] = value
        if "generation_id" in message.__slots__:
            self.ids["generation_id"] = message.generation_id  # type: ignore[attr-defined]
        for made in getattr(message, "topics", None) or []:
            named, chosen = getattr(made, "name", None), getattr(made, "topic_id", bytes(16))
            if named and chosen != bytes(16):
                self.ids[f"topic_id of {named}"] = chosen
        del request


class Draw:
    """The random generator of a dialogue, and its names."""

    def __init__(self, scene: Scene, known: Known) -> None:
        self.rng: Random = scene.chance()
        self.known = known
        self.topics = (scene.name("a"), scene.name("b"))
        self.other_names = (scene.name("c"), scene.name("unknown"), "", "a b")
        self.groups = (scene.name("g"), scene.name("h"), scene.name("none"))
        self.tids = (scene.name("t"), scene.name("u"), "")

    def one(self, *values: Any) -> Any:  # noqa: ANN401 - values of any field
        """Draw a choice."""
        return self.rng.choice(values)

    def topic(self) -> str:
        """Return a topic, mostly an existing one."""
        return self.rng.choice(self.topics if self.rng.random() < 0.8 else self.other_names)

    def group(self) -> str:
        """Return a group."""
        return self.rng.choices(self.groups, (8, 4, 1))[0]

    def tid(self) -> str:
        """Return a transactional id."""
        return self.rng.choices(self.tids, (8, 3, 1))[0]

    def topic_id(self) -> bytes:
        """Return the id of a topic, or an unknown one."""
        chosen = self.rng.choices((*self.topics, "unknown", "zero"), (6, 4, 1, 1))[0]
        fixed = {"unknown": UNKNOWN_ID, "zero": bytes(16)}
        found: bytes = fixed.get(chosen) or self.known.ids.get(f"topic_id of {chosen}", bytes(16))
        return found

    def id_of(self, name: str, *others: Any) -> Any:  # noqa: ANN401 - ids are of several types
        """Return an id from the broker, mostly, or another value."""
        if self.rng.random() < 0.75:
            return self.known.ids.get(name, others[0])
        return self.rng.choice(others)

    def records(self) -> bytes | None:
        """Return a batch: of a codec, a producer, a transaction, or invalid."""
        chance = self.rng.random()
        kind = self.rng.choice(list(Codec))
        count = self.rng.randrange(1, 4)
        sequence = self.one(0, 1, 2, 3)
        if chance < 0.05:
            return self.rng.choice((None, b"", b"short"))
        producer = (-1, -1, -1)
        attributes = 0
        if chance > 0.7:
            epoch = self.id_of("producer_epoch", 0, 1)
            producer = (self.known.ids.get("producer_id", -1), epoch, sequence)
            attributes = TRANSACTIONAL if chance > 0.85 else 0
        content = batch(
            count,
            codec=kind,
            producer=producer,
            attributes=attributes,
            start_ms=START_MS + self.rng.randrange(5000),
            key=self.one(b"k", b"k", None),
        )
        if 0.05 <= chance < 0.1:
            content[self.rng.randrange(12, len(content))] ^= 1 << self.rng.randrange(8)
        return bytes(content)


Pool = Callable[[Draw], Any]

POOLS: dict[str, Pool] = {
    "name": Draw.topic,
    "topic": Draw.topic,
    "topic_name": Draw.topic,
    "topic_names": Draw.topic,
    "resource_name": Draw.topic,
    "subscribed_topic_names": Draw.topic,
    "topic_id": Draw.topic_id,
    "group_id": Draw.group,
    "group_ids": Draw.group,
    "groups": Draw.group,
    "groups_names": Draw.group,
    "coordinator_keys": Draw.group,
    "key": Draw.group,
    "transactional_id": Draw.tid,
    "transactional_ids": Draw.tid,
    "v3_and_below_transactional_id": Draw.tid,
    "records": Draw.records,
    "producer_id": lambda d: d.id_of("producer_id", -1, 5_000_000),
    "producer_id_filters": lambda d: d.id_of("producer_id", 5_000_000),
    "v3_and_below_producer_id": lambda d: d.id_of("producer_id", -1, 5_000_000),
    "producer_epoch": lambda d: d.id_of("producer_epoch", 0, -1, 1, 5),
    "v3_and_below_producer_epoch": lambda d: d.id_of("producer_epoch", 0, -1, 1, 5),
    "member_id": lambda d: d.id_of("member_id", "", "stranger"),
    "member_epoch": lambda d: d.id_of("member_epoch", 0, 0, 0, -1, -2, 1, 7),
    "generation_id": lambda d: d.id_of("generation_id", -1, 0, 1, 2),
    "generation_id_or_member_epoch": lambda d: d.id_of("generation_id", -1, -1, 0, 2),
    "session_id": lambda d: d.id_of("session_id", 0, 0),
    "session_epoch": lambda d: d.one(-1, -1, 0, 1, 2),
    "group_instance_id": lambda d: d.one(None, None, None, "i"),
    "instance_id": lambda d: d.one(None, None, None, "i"),
    "partition_index": lambda d: d.one(0, 0, 0, 1, 2, -1),
    "partition_indexes": lambda d: d.one(0, 0, 1, 2),
    "partition": lambda d: d.one(0, 0, 0, 1, 2, -1),
    "partitions": lambda d: d.one(0, 0, 1, 2),
    "index": lambda d: d.one(0, 0, 0, 1, 2, -1),
    "num_partitions": lambda d: d.one(1, 2, -1, 0, -2),
    "count": lambda d: d.one(1, 2, 3, 0, -1),
    "replication_factor": lambda d: d.one(1, 1, -1, 0, 2),
    "broker_ids": lambda d: d.one(1, 1, 1, 7),
    "replicas": lambda d: d.one(1, 1, 1, 7),
    "fetch_offset": lambda d: d.one(0, 0, 1, 2, 3, -1, 1 << 40),
    "offset": lambda d: d.one(0, 1, 2, -1, 1 << 40),
    "committed_offset": lambda d: d.one(0, 1, 5, -1),
    "committed_metadata": lambda d: d.one("", None, "note"),
    "timestamp": lambda d: d.one(-1, -1, -2, -3, -4, 0, START_MS, START_MS + 2500, 1 << 50),
    "current_leader_epoch": lambda d: d.one(-1, -1, 0, 1),
    "leader_epoch": lambda d: d.one(-1, 0, 1),
    "committed_leader_epoch": lambda d: d.one(-1, 0, 1),
    "last_fetched_epoch": lambda _: -1,
    "isolation_level": lambda d: d.one(0, 0, 1),
    "max_wait_ms": lambda d: d.one(0, 10, 20),
    "min_bytes": lambda d: d.one(0, 1, 1, 1000),
    "max_bytes": lambda d: d.one(1 << 20, 1 << 20, 1, 100),
    "partition_max_bytes": lambda d: d.one(1 << 20, 1 << 20, 1, 100),
    "log_start_offset": lambda _: -1,
    "replica_id": lambda _: -1,
    "acks": lambda d: d.one(-1, -1, 1, 0, 2),
    "timeout_ms": lambda _: 2000,
    "transaction_timeout_ms": lambda d: d.one(60_000, 60_000, 900_001, 0),
    "session_timeout_ms": lambda d: d.one(30_000, 30_000, 30_000, 5),
    "rebalance_timeout_ms": lambda d: d.one(200, 200, 100, -1),
    "protocol_type": lambda d: d.one("consumer", "consumer", "consumer", "other", ""),
    "protocol_name": lambda d: d.one("range", "range", None, "other"),
    "resource_type": lambda d: d.one(2, 2, 2, 2, 2, 0, 3),
    "resource_types": lambda d: d.one(2, 4, 8, 99),
    "config_operation": lambda d: d.one(0, 0, 1, 2, 3, 4),
    "configuration_keys": lambda d: d.one(*CONFIGS),
    "value": lambda d: d.one(*CONFIG_VALUES),
    "key_type": lambda d: d.one(0, 0, 1, 2),
    "election_type": lambda d: d.one(0, 1),
    "endpoint_type": lambda d: d.one(1, 1, 2),
    "states_filter": lambda d: d.one("Empty", "Stable", "Dead", "Nonsense"),
    "types_filter": lambda d: d.one("classic", "consumer", "Nonsense"),
    "state_filters": lambda d: d.one("Ongoing", "Empty", "Nonsense"),
    "transactional_id_pattern": lambda d: d.one(None, ".*", "nothing"),
    "duration_filter": lambda d: d.one(-1, 0, 1 << 40),
    "server_assignor": lambda d: d.one(None, None, "range", "uniform", "nonsense"),
    "subscribed_topic_regex": lambda _: None,
    "rack_id": lambda d: d.one("", "r"),
    "coordinator_epoch": lambda d: d.one(0, 0, -1),
    "path": lambda _: "/no/such/folder",
    "response_partition_limit": lambda d: d.one(2000, 1, 2),
    "high_watermark": lambda _: 2**63 - 1,
    "replica_epoch": lambda _: -1,
    "validate_only": lambda d: d.one(False, False, True),
    "verify_only": lambda d: d.one(False, False, True),
    "client_software_name": lambda d: d.one("client", "a b"),
    "client_software_version": lambda d: d.one("1.0", ""),
}
SPECIAL: dict[tuple[str, str], Pool] = {
    ("CreatableTopicConfig", "name"): lambda d: d.one(*CONFIGS),
    ("AlterableConfig", "name"): lambda d: d.one(*CONFIGS),
    ("JoinGroupRequestProtocol", "name"): lambda d: d.one("range", "range", "other"),
    ("DescribeQuorumRequestTopicData", "topic_name"): lambda _: "__cluster_metadata",
    ("DescribeQuorumRequestPartitionData", "partition_index"): lambda _: 0,
    ("MetadataRequestTopic", "name"): lambda d: d.one(*d.topics, None, *d.other_names),
}
"""Fields whose name has another meaning in this class."""
BARE = {"replica_state", "replica_directory_id", "cluster_id"}
"""Fields of brokers that stay at their default."""


def drawn(scene: Scene) -> Talk:
    """Prepare two topics, a producer and a member; then send random requests."""
    known = Known()
    draw = Draw(scene, known)
    a, b = draw.topics
    steps = [
        create(topic(a, 2), topic(b)),
        produce(a, batch(2)),
        init_producer(scene.name("t")),
        join(scene.name("g"), version=3),
    ]
    for step in steps:
        known.take(step.request, (yield step))
    member, generation = known.ids.get("member_id", ""), known.ids.get("generation_id", -1)
    yield sync(scene.name("g"), generation, member, assigned={member: b"a"})
    for _ in range(DRAWN_STEPS):
        ask = draw_request(draw)
        known.take(ask.request, (yield ask))


def draw_request(draw: Draw) -> Ask:
    """Return a request of any API in any version."""
    keys = [key for key in sorted(SERVED) if APIS[key].name not in LEFT_OUT]
    weights = [weight(APIS[key].name) for key in keys]
    key = draw.rng.choices(keys, weights)[0]
    version = draw.rng.randint(SERVED[key].low, SERVED[key].high)
    request = fill(draw, request_class(key), version)
    tidy(request)
    return Ask(request, version)


def weight(name: str) -> int:
    """Return how often an API is drawn."""
    return 6 if name in OFTEN else 1 if name in SELDOM else 3


def fill(draw: Draw, cls: type[Message], version: int) -> Message:
    """Return a message with every field of the version drawn."""
    message = cls()
    for described in fields_at(cls, version):
        if described.present and described.name not in BARE:
            setattr(message, described.name, value_of(draw, cls, described, version))
    return message


def value_of(draw: Draw, cls: type[Message], described: Field, version: int) -> Any:  # noqa: ANN401
    """Draw one field; arrays are short, sometimes empty or null, and may repeat an entry."""
    if not described.array:
        value = element(draw, cls, described, version)
        return suited(value, described)
    if described.nullable and draw.rng.random() < 0.15:
        return None
    size = draw.rng.choices((0, 1, 2, 3), (1 if may_be_empty(described) else 0, 14, 6, 2))[0]
    values = [suited(element(draw, cls, described, version), described) for _ in range(size)]
    return values if draw.rng.random() < TWINS else without_duplicates(values)


def may_be_empty(described: Field) -> bool:
    """Return whether an empty array has a meaning of its own."""
    return not described.name.startswith("partition")


def without_duplicates(values: list[Any]) -> list[Any]:
    """Remove duplicate entries."""
    kept: list[Any] = []
    for value in values:
        if not has_duplicates([*kept, value]):
            kept.append(value)
    return kept


def element(draw: Draw, cls: type[Message], described: Field, version: int) -> Any:  # noqa: ANN401
    """Draw a value that is no array."""
    special = SPECIAL.get((cls.__name__, described.name))
    if special is not None:
        return special(draw)
    if described.struct is not None:
        if described.nullable and not described.array and draw.rng.random() < 0.5:
            return None
        return fill(draw, described.struct, version)
    pool = POOLS.get(described.name)
    if pool is not None:
        return pool(draw)
    usual = {"bool": (False, False, True), "string": ("", "x"), "bytes": (b"", b"x")}
    return draw.one(*usual.get(described.kind, (described.default,)))


def suited(value: Any, described: Field) -> Any:  # noqa: ANN401 - a value of any field
    """Replace null if the version does not allow it."""
    if value is not None or described.nullable:
        return value
    return "" if described.kind == "string" else described.default


def tidy(request: Message) -> None:
    """Remove what would affect other dialogues."""
    if isinstance(request, DescribeTopicPartitionsRequest) and not request.topics:
        request.response_partition_limit, request.cursor = 2000, None
    if type(request).__name__ == "ElectLeadersRequest" and request.topic_partitions is None:  # type: ignore[attr-defined]
        request.topic_partitions = []  # type: ignore[attr-defined]
