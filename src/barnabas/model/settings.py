"""Every setting a broker starts with, parsed once and handed down; nothing reads them elsewhere.

One naming rule: a field ends in its unit (`segment_bytes`, `linger_ms`), a key in the file does
not (`segment_size: 1GB`, `linger_time: 5ms`), because there the value names the unit itself.
`barnabas.config` holds the table between the two, reads the docstring under each field for
the commented example, and checks ranges; this module only says what exists and what it defaults to.

Settings are fixed for the life of the process. What topics inherit from them, and may override
while the broker runs, is in `barnabas.metadata.topic_config`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from barnabas.model.ids import NodeId

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
UNLIMITED = -1
FIRST_NODE = NodeId(1)

Flush = Literal["ack", "interval"]
Roles = Literal["both", "broker", "controller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Who this broker is, where it listens, and what clients may make it do."""

    node_id: NodeId = FIRST_NODE
    """The number of this broker, its own within the cluster."""

    host: str = "127.0.0.1"
    """The address to listen on; 0.0.0.0 listens on all, and then advertised_host should be set."""

    port: int = 9092
    """The port to listen on; 0 takes any that is free."""

    advertised_host: str | None = None
    """The host that clients are told to connect to, where it is not the one listened on."""

    advertised_port: int | None = None
    """The port that clients are told to connect to, where it is not the one listened on."""

    data_dir: str = "data"
    """The folder that holds everything the broker must not lose."""

    rack: str | None = None
    """Where this broker stands, so that replicas are spread and consumers read nearby."""

    auto_create_topics: bool = True
    """Whether a topic is made when a client first asks for it."""

    default_partitions: int = 1
    """The partitions of a topic that is made without saying how many."""

    delete_topics: bool = True
    """Whether clients may delete topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Which cluster the broker belongs to."""

    cluster_id: str | None = None
    """The name of the cluster; one is made on the first start where none is given."""

    bootstrap_servers: tuple[str, ...] = ()
    """Other brokers of the cluster, as host:port. It has no effect yet: brokers find each other
    by `voters`."""

    roles: Roles = "both"
    """broker: serves clients. controller: votes on metadata. both: does either."""

    host: str = "127.0.0.1"
    """The address to listen on for other brokers; clients are not served there."""

    port: int = 0
    """The port to listen on for other brokers; without voters nobody listens."""

    advertised_host: str | None = None
    """The host that other brokers connect to, where it is not the one listened on."""

    voters: tuple[str, ...] = ()
    """The nodes that form the metadata quorum, as id@host:port of their listeners for brokers;
    every node of the cluster is given the same. Without any, this broker is a cluster of its
    own."""

    election_timeout_ms: int = SECOND_MS
    """How long a candidate waits for votes before it tries again; up to twice that, by chance."""

    fetch_timeout_ms: int = SECOND_MS
    """A voter that hears nothing from the quorum's leader for this long asks for an election, and
    a leader that hears from no majority for half again as long gives up."""

    broker_session_timeout_ms: int = 9 * SECOND_MS
    """A broker that the controller has not heard of for this long is fenced: others take over."""

    broker_heartbeat_interval_ms: int = 2 * SECOND_MS
    """How often a broker tells the controller that it is there."""

    snapshot_after_records: int = 20_000
    """So many records of metadata are written before they are summed up in a snapshot."""

    leader_imbalance_check_interval_ms: int = 5 * MINUTE_MS
    """How often partitions are given back to their preferred leaders; 0 is never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """How logs are kept; topics may override most of it."""

    segment_bytes: int = GIB
    """A new segment file is begun when the last one would outgrow this. A larger batch is
    refused."""

    segment_ms: int = 7 * DAY_MS
    """A new segment file is begun when the last one is older than this."""

    retention_ms: int = 7 * DAY_MS
    """Records older than this are deleted, whole segments at a time; unlimited keeps them."""

    retention_bytes: int = UNLIMITED
    """The oldest segments are deleted when a partition outgrows this; unlimited keeps them."""

    flush: Flush = "ack"
    """ack: a produce is answered after its fsync. interval: fsync runs every fsync_interval,
    and a power cut loses what was answered since the last one."""

    fsync_interval_ms: int = SECOND_MS
    """The longest that written records wait for their fsync where flush is interval."""

    index_interval_bytes: int = 4 * KIB
    """An index entry is written about every so many bytes of log."""

    index_bytes: int = 10 * MIB
    """A new segment file is begun when an index would outgrow this."""

    cleanup_policy: str = "delete"
    """delete drops old segments, compact keeps the last value of each key; both may be given."""

    retention_check_interval_ms: int = 5 * MINUTE_MS
    """How often old segments are looked for."""

    compaction_check_interval_ms: int = 15 * SECOND_MS
    """How often compacted topics are looked over for work."""

    min_cleanable_dirty_ratio: float = 0.5
    """A log is compacted once this share of it has not been compacted before."""

    delete_retention_ms: int = DAY_MS
    """How long a compacted topic keeps the marker of a deleted key."""

    min_compaction_lag_ms: int = 0
    """Records younger than this are never compacted away."""

    file_delete_delay_ms: int = MINUTE_MS
    """A deleted segment leaves the disk this much later, so that readers can finish."""

    producer_id_expiration_ms: int = DAY_MS
    """An idempotent producer that is silent for this long is forgotten."""

    flush_threads: int = 4
    """How many fsyncs may run at the same time."""

    verify_on_start: bool = False
    """Whether all stored checksums are checked right after the start, in the background."""

    scrub_interval_ms: int = 7 * DAY_MS
    """How often all stored checksums are checked while the broker runs; 0 is never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceSettings:
    """Limits that keep one client from starving the rest, and knobs for speed."""

    max_connections: int = 20_000
    """Connections beyond this are refused."""

    max_connections_per_ip: int = 0
    """Connections from one address beyond this are refused; 0 is no limit."""

    socket_send_buffer_bytes: int = 0
    """The send buffer of a socket; 0 lets the operating system tune it."""

    socket_receive_buffer_bytes: int = 0
    """The receive buffer of a socket; 0 lets the operating system tune it."""

    max_message_bytes: int = MIB + 12
    """The largest record batch that is taken; the odd 12 bytes are Kafka's own."""

    max_request_bytes: int = 100 * MIB
    """A request that announces more than this closes its connection unread."""

    connection_idle_ms: int = 10 * MINUTE_MS
    """A connection that is silent for this long is closed."""

    request_stall_ms: int = 30 * SECOND_MS
    """A connection that stops within a request, or does not read its answers, is closed after
    this."""

    backlog: int = 4096
    """How many connections may wait to be accepted."""

    max_fetch_bytes: int = 55 * MIB
    """The most that one fetch is answered with, whatever the client asks for."""

    fetch_session_slots: int = 1000
    """How many incremental fetch sessions are remembered."""

    sendfile_threshold_bytes: int = 32 * KIB
    """Fetches from this size on go from the page cache to the socket uncopied."""

    producer_quota_bytes_per_second: int = 0
    """What one client id may produce in a second before it is slowed down; 0 is no limit."""

    consumer_quota_bytes_per_second: int = 0
    """What one client id may fetch in a second before it is slowed down; 0 is no limit."""

    batch_bytes: int = 16 * KIB
    """An fsync waits for company no longer once this many bytes wait for it."""

    linger_ms: int = 0
    """How long an fsync may wait for more writes to share it."""

    slow_event_ms: int = 0
    """An event of the loop that takes longer than this is logged, with what it was; 0 logs none.
    While it is on, each event costs a few microseconds more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSettings:
    """How many copies there are, and when one counts."""

    default_replication_factor: int = 1
    """The copies of a topic that is made without saying how many. A topic that is made on demand
    while brokers are down gets the missing copies when they are back."""

    min_insync_replicas: int = 1
    """A write with acks=all is refused while fewer copies than this are in sync."""

    replica_lag_max_ms: int = 30 * SECOND_MS
    """A copy that has not caught up for this long is out of sync."""

    replica_lag_max_records: int = 0
    """A copy that is behind by more records than this is out of sync; 0 is no limit."""

    unclean_leader_election: bool = False
    """Whether a copy that is out of sync may lead when no other is left, at the price of
    acknowledged records."""

    internal_replication_factor: int = 3
    """The copies of the broker's own topics. Those that there are no brokers for when a topic is
    made are added when brokers are there."""

    fetchers: int = 1
    """How many connections a broker copies partitions over, from each of the others."""

    fetch_wait_ms: int = 500
    """How long a leader lets a follower wait for something to copy."""

    fetch_bytes: int = 10 * MIB
    """The most that a follower copies at once."""

    catch_up_bytes_per_second: int = 0
    """The most that a broker copies in a second for replicas out of sync; 0 is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How consumers share topics, and how long what they read is remembered."""

    offsets_partitions: int = 50
    """The partitions of __consumer_offsets, which is made on first use."""

    offsets_retention_ms: int = 7 * DAY_MS
    """How long the offsets of a group are kept after its last member left."""

    offsets_retention_check_ms: int = 10 * MINUTE_MS
    """How often offsets that are kept no longer are looked for."""

    offset_metadata_max_bytes: int = 4 * KIB
    """The longest note that a consumer may leave with an offset."""

    max_size: int = 10_000
    """The most members that a group takes."""

    min_session_timeout_ms: int = 6 * SECOND_MS
    """The shortest silence after which a member of a classic group may be taken for dead."""

    max_session_timeout_ms: int = 30 * MINUTE_MS
    """The longest silence that a member of a classic group may ask for."""

    initial_rebalance_delay_ms: int = 100
    """How long a new classic group waits for more members before it shares out partitions."""

    heartbeat_wait_ms: int = 3 * SECOND_MS
    """How long a heartbeat in a classic group waits for news of a rebalance; 0 does not wait."""

    consumer_session_timeout_ms: int = 45 * SECOND_MS
    """The silence after which a member of a `consumer` group (KIP-848) is taken for dead."""

    consumer_heartbeat_interval_ms: int = SECOND_MS
    """How often members of `consumer` groups report, and how soon they hear of a rebalance."""

    consumer_regex_refresh_interval_ms: int = 10 * MINUTE_MS
    """How often regular expressions are matched against all topics without an occasion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """How long transactions may take and are remembered."""

    log_partitions: int = 50
    """The partitions of __transaction_state, which is made on first use."""

    max_timeout_ms: int = 15 * MINUTE_MS
    """The longest timeout that a transactional producer may ask for."""

    id_expiration_ms: int = 7 * DAY_MS
    """How long a transactional id that nobody uses is remembered."""

    abort_check_interval_ms: int = 10 * SECOND_MS
    """How often transactions that took too long are looked for."""

    id_expiration_check_ms: int = HOUR_MS
    """How often transactional ids that nobody uses are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """A topic that is made at the start where it does not exist."""

    name: str
    """The name of the topic."""

    partitions: int | None = None
    """How many partitions it is made with; the broker's default where none is given."""

    replication_factor: int | None = None
    """How many copies it is made with; the broker's default where none is given."""

    config: Mapping[str, str] = field(default_factory=dict)
    """What it sets for itself, by Kafka's names for topic configs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a broker is told at its start."""

    broker: BrokerSettings = field(default_factory=BrokerSettings)
    """Who this broker is, where it listens, and what clients may make it do."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    """Which cluster the broker belongs to."""

    storage: StorageSettings = field(default_factory=StorageSettings)
    """How logs are kept; topics may override most of it."""

    performance: PerformanceSettings = field(default_factory=PerformanceSettings)
    """Limits that keep one client from starving the rest, and knobs for speed."""

    replication: ReplicationSettings = field(default_factory=ReplicationSettings)
    """How many copies there are, and when one counts."""

    groups: GroupSettings = field(default_factory=GroupSettings)
    """How consumers share topics."""

    transactions: TransactionSettings = field(default_factory=TransactionSettings)
    """How long transactions may take."""

    topics: tuple[TopicSettings, ...] = ()
    """Topics to be made at the start where they do not exist."""
