"""All settings of a broker, with their defaults.

Settings are parsed once and passed down. A field ends in its unit (`segment_bytes`, `linger_ms`).
The key in the file does not (`segment_size: 1GB`, `linger_time: 5ms`): the value has a unit.
`barnabas.config` maps keys to fields, checks ranges, and uses the docstring under each field as the
comment in the example file.

Settings do not change while the process runs. `barnabas.metadata.topic_config` has the configs that
topics inherit from them and can override at run time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from barnabas.model.ids import NodeId
from barnabas.model.security_settings import ListenerSettings, SecuritySettings, TlsFiles

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
    """The identity and addresses of this broker, and what clients may do."""

    node_id: NodeId = FIRST_NODE
    """The id of this broker, unique within the cluster."""

    host: str = "127.0.0.1"
    """The address to listen on; 0.0.0.0 listens on all. Clients are then told to connect to the
    name of this machine, unless advertised_host is set."""

    port: int = 9092
    """The port to listen on; 0 takes any free port."""

    advertised_host: str | None = None
    """The host that clients connect to, if it differs from `host`."""

    advertised_port: int | None = None
    """The port that clients connect to, if it differs from `port`."""

    data_dir: str = "data"
    """The directory for all data of the broker."""

    rack: str | None = None
    """The rack of this broker. Replicas are spread over racks, and consumers can read in their
    own."""

    auto_create_topics: bool = True
    """Whether a topic is created when a client first names it."""

    default_partitions: int = 1
    """The number of partitions of a topic that is created without one."""

    delete_topics: bool = True
    """Whether clients may delete topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The cluster that the broker belongs to."""

    cluster_id: str | None = None
    """The id of the cluster; the first start generates one if none is given."""

    bootstrap_servers: tuple[str, ...] = ()
    """Other brokers of the cluster, as host:port. It has no effect yet: brokers find each other
    by `voters`."""

    roles: Roles = "both"
    """broker: serves clients. controller: votes on metadata. both: does both."""

    host: str = "127.0.0.1"
    """The address to listen on for other brokers; clients are not served there."""

    port: int = 0
    """The port to listen on for other brokers; not used without voters."""

    advertised_host: str | None = None
    """The host that other brokers connect to, if it differs from `host`."""

    tls_certificate: str | None = None
    """A PEM file with the certificate that this broker shows to other brokers. If it is set,
    brokers talk to each other over TLS, and each verifies the certificate of the other."""

    tls_key: str | None = None
    """A PEM file with the private key of tls_certificate; without a password."""

    tls_authorities: str | None = None
    """A PEM file with the authorities that sign the certificates of brokers."""

    tls_peer_names: tuple[str, ...] = ()
    """Names that the certificate of a connecting broker may have. It must have one of these, the
    host of a voter or of a registered broker, or the address that it connects from."""

    allow_plaintext_peers: bool = False
    """Whether other brokers may connect without TLS over a network. Any process that reaches that
    port can then do everything. Without it, and without tls_certificate, host must be loopback."""

    voters: tuple[str, ...] = ()
    """The nodes of the metadata quorum, as id@host:port of their listeners for brokers. Give every
    node of the cluster the same list. Without voters this broker is a cluster of one."""

    election_timeout_ms: int = SECOND_MS
    """How long a candidate waits for votes before it tries again; randomly up to twice that."""

    fetch_timeout_ms: int = SECOND_MS
    """A voter that gets no response from the quorum's leader for this long starts an election. A
    leader that gets no fetch from a majority for one and a half times as long resigns."""

    broker_session_timeout_ms: int = 9 * SECOND_MS
    """A broker that sends the controller no heartbeat for this long is fenced: others take over."""

    broker_heartbeat_interval_ms: int = 2 * SECOND_MS
    """How often a broker sends a heartbeat to the controller."""

    snapshot_after_records: int = 20_000
    """A metadata snapshot is written after this many records."""

    leader_imbalance_check_interval_ms: int = 5 * MINUTE_MS
    """How often leadership moves back to preferred leaders; 0 means never."""

    @property
    def tls_files(self) -> TlsFiles | None:
        """The files for TLS between brokers; None if they talk without it."""
        if self.tls_certificate is None or self.tls_authorities is None:
            return None
        return TlsFiles(
            certificate=self.tls_certificate,
            key=self.tls_key or self.tls_certificate,
            authorities=self.tls_authorities,
            client_authentication="required",
            label="other brokers",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """How logs are stored; topics can override most of these."""

    segment_bytes: int = GIB
    """A new segment starts before the last one exceeds this size. A larger batch is rejected."""

    segment_ms: int = 7 * DAY_MS
    """A new segment starts when the last one is older than this."""

    retention_ms: int = 7 * DAY_MS
    """Records older than this are deleted, in whole segments; unlimited keeps them."""

    retention_bytes: int = UNLIMITED
    """The oldest segments of a partition are deleted when it exceeds this; unlimited keeps them."""

    flush: Flush = "ack"
    """ack: a produce request is answered after its fsync. interval: an fsync runs every
    fsync_interval, and a power cut loses what was acknowledged since the last one."""

    fsync_interval_ms: int = SECOND_MS
    """How long written records wait for their fsync at most, if flush is interval."""

    index_interval_bytes: int = 4 * KIB
    """An index entry is written about every this many bytes of log."""

    index_bytes: int = 10 * MIB
    """A new segment starts before an index exceeds this size."""

    cleanup_policy: str = "delete"
    """delete removes old segments, compact keeps the last value of each key; both can be
    combined."""

    retention_check_interval_ms: int = 5 * MINUTE_MS
    """How often the broker looks for segments to delete."""

    compaction_check_interval_ms: int = 15 * SECOND_MS
    """How often the broker looks for logs to compact."""

    min_cleanable_dirty_ratio: float = 0.5
    """A log is compacted once this share of it is uncompacted."""

    delete_retention_ms: int = DAY_MS
    """How long a compacted topic keeps tombstones."""

    min_compaction_lag_ms: int = 0
    """Records younger than this are never compacted."""

    file_delete_delay_ms: int = MINUTE_MS
    """A deleted segment is removed from disk this much later, so that readers can finish."""

    producer_id_expiration_ms: int = DAY_MS
    """The state of an idempotent producer expires when it sends nothing for this long."""

    flush_threads: int = 4
    """How many fsyncs may run at the same time."""

    verify_on_start: bool = False
    """Whether all stored checksums are checked after each start, in the background."""

    scrub_interval_ms: int = 7 * DAY_MS
    """How often all stored checksums are checked while the broker runs; 0 means never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceSettings:
    """Limits that keep one client from starving the others, and performance tuning."""

    max_connections: int = 20_000
    """Connections beyond this number are refused."""

    max_connections_per_ip: int = 0
    """Connections from one address beyond this number are refused; 0 means no limit."""

    max_connections_per_ip_overrides: tuple[str, ...] = ()
    """Other limits for some addresses, such as 10.0.0.1:100."""

    max_connection_rate: int = 0
    """New connections per second that are accepted on average; 0 means no limit."""

    socket_send_buffer_bytes: int = 0
    """The send buffer of a socket; 0 lets the operating system choose."""

    socket_receive_buffer_bytes: int = 0
    """The receive buffer of a socket; 0 lets the operating system choose."""

    max_message_bytes: int = MIB + 12
    """The largest accepted record batch; the 12 extra bytes are Kafka's default."""

    max_request_bytes: int = 100 * MIB
    """The connection of a larger request is closed; the request is not read."""

    max_buffered_bytes: int = GIB
    """Half-read requests, unread responses and TLS connections of all clients take no more memory
    than this: beyond it no further request is read until another is done, and no further TLS
    connection begins. A TLS connection counts as 40 KB. 0 means no limit."""

    connection_idle_ms: int = 10 * MINUTE_MS
    """A connection without requests for this long is closed."""

    request_stall_ms: int = 30 * SECOND_MS
    """A connection is closed after this time if a request stays incomplete or the client does not
    read its responses."""

    backlog: int = 4096
    """How many connections may wait to be accepted."""

    max_fetch_bytes: int = 55 * MIB
    """The largest response to a fetch, whatever the client asks for."""

    fetch_session_slots: int = 1000
    """The largest number of incremental fetch sessions."""

    sendfile_threshold_bytes: int = 32 * KIB
    """Fetches of at least this size use sendfile, from the page cache to the socket."""

    producer_quota_bytes_per_second: int = 0
    """Bytes per second that one client id may produce before it is throttled; 0 means no limit.
    Quotas that are set with `barnabas quota` take precedence."""

    consumer_quota_bytes_per_second: int = 0
    """Bytes per second that one client id may fetch before it is throttled; 0 means no limit.
    Quotas that are set with `barnabas quota` take precedence."""

    batch_bytes: int = 16 * KIB
    """Start the fsync as soon as this many bytes are waiting, even before linger_time is over."""

    linger_ms: int = 0
    """How long an fsync may wait for more writes."""

    slow_event_ms: int = 0
    """Log each event of the event loop that takes longer than this; 0 logs none. If set, each event
    costs a few microseconds more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSettings:
    """How partitions are replicated, and when a replica is in sync."""

    default_replication_factor: int = 1
    """The replication factor of a topic that is created without one. A topic that is created
    automatically while brokers are down gets the missing replicas when they are back."""

    min_insync_replicas: int = 1
    """A write with acks=all is rejected if fewer replicas than this are in sync."""

    replica_lag_max_ms: int = 30 * SECOND_MS
    """A replica that has not caught up for this long is out of sync."""

    replica_lag_max_records: int = 0
    """A replica that is behind by more records than this is out of sync; 0 means no limit."""

    unclean_leader_election: bool = False
    """Whether a replica that is out of sync may become leader if no other is left. This loses
    acknowledged records."""

    internal_replication_factor: int = 3
    """The replication factor of internal topics. Replicas for which there are not enough brokers
    are added when more brokers join."""

    fetchers: int = 1
    """How many connections a broker uses to replicate from each other broker."""

    fetch_wait_ms: int = 500
    """How long a follower's fetch waits at the leader for new records."""

    fetch_bytes: int = 10 * MIB
    """The largest response to a follower's fetch."""

    catch_up_bytes_per_second: int = 0
    """Bytes per second that a broker replicates for replicas out of sync; 0 means no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How consumer groups behave, and how long committed offsets are kept."""

    offsets_partitions: int = 50
    """The number of partitions of __consumer_offsets, which is created on first use."""

    offsets_retention_ms: int = 7 * DAY_MS
    """How long the offsets of a group are kept after its last member left."""

    offsets_retention_check_ms: int = 10 * MINUTE_MS
    """How often the broker looks for expired offsets."""

    offset_metadata_max_bytes: int = 4 * KIB
    """The largest metadata that a consumer may commit with an offset."""

    max_size: int = 10_000
    """The largest number of members of a group."""

    min_session_timeout_ms: int = 6 * SECOND_MS
    """The shortest session timeout that a member of a classic group may request."""

    max_session_timeout_ms: int = 30 * MINUTE_MS
    """The longest session timeout that a member of a classic group may request."""

    initial_rebalance_delay_ms: int = 100
    """How long a new classic group waits for more members before it assigns partitions."""

    heartbeat_wait_ms: int = 3 * SECOND_MS
    """How long the response to a heartbeat in a classic group waits for a rebalance; 0 means not at
    all."""

    consumer_session_timeout_ms: int = 45 * SECOND_MS
    """The session timeout of members of `consumer` groups (KIP-848)."""

    consumer_heartbeat_interval_ms: int = SECOND_MS
    """How often members of `consumer` groups send heartbeats, and learn of a rebalance."""

    consumer_regex_refresh_interval_ms: int = 10 * MINUTE_MS
    """How often subscribed patterns are matched again with all topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSettings:
    """How share groups behave, unless a group has configs of its own (KIP-932)."""

    state_partitions: int = 50
    """The number of partitions of __share_group_state, which is created on first use."""

    updates_per_snapshot: int = 500
    """After this many changes the whole state of a share partition is written again."""

    tidy_interval_ms: int = 5 * MINUTE_MS
    """How often the broker deletes the part of __share_group_state that is no longer needed."""

    write_timeout_ms: int = 5 * SECOND_MS
    """How long a broker tries to reach the coordinator of a share partition."""

    record_lock_duration_ms: int = 30 * SECOND_MS
    """How long a consumer may keep a record without an acknowledgement."""

    min_record_lock_duration_ms: int = 15 * SECOND_MS
    """The shortest lock duration that a group may have."""

    max_record_lock_duration_ms: int = MINUTE_MS
    """The longest lock duration that a group may have."""

    delivery_count_limit: int = 5
    """How often a record is delivered before the group gives up on it."""

    partition_max_record_locks: int = 2_000
    """How many records of a partition the consumers of a group may keep at a time."""

    max_sessions: int = 2_000
    """How many share sessions a broker has at most; each is one consumer."""

    max_size: int = 200
    """The largest number of members of a share group."""

    session_timeout_ms: int = 45 * SECOND_MS
    """The session timeout of members of share groups."""

    heartbeat_interval_ms: int = 5 * SECOND_MS
    """How often members of share groups send heartbeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """How long transactions may take, and how long transactional ids are kept."""

    log_partitions: int = 50
    """The number of partitions of __transaction_state, which is created on first use."""

    max_timeout_ms: int = 15 * MINUTE_MS
    """The longest timeout that a transactional producer may request."""

    id_expiration_ms: int = 7 * DAY_MS
    """How long an unused transactional id is kept."""

    abort_check_interval_ms: int = 10 * SECOND_MS
    """How often the broker looks for transactions that exceed their timeout."""

    id_expiration_check_ms: int = HOUR_MS
    """How often the broker looks for expired transactional ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservabilitySettings:
    """What the broker tells operators about itself and its clients."""

    http_listen: str | None = None
    """HOST:PORT of the HTTP listener with metrics and health, such as 127.0.0.1:9644; port 0 takes
    any free port. It has no password and no TLS: keep it on a private network. Without it the
    broker counts nothing."""

    slow_request_ms: int = 500
    """A request that takes longer is logged and listed at /debug/slow; 0 logs none. The time that a
    Fetch, JoinGroup or SyncGroup asked to wait does not count. It needs http_listen."""

    slow_request_times: tuple[str, ...] = ()
    """Other limits for some APIs, such as CreateTopics:5s."""

    partition_series_max: int = 2_000
    """With more partitions than this on a broker, /metrics has sums by topic, and the series of
    partitions are on /metrics/partitions only."""

    log_lines_max: int = 100
    """Lines of the same event that are logged within ten seconds; the next line says how many were
    left out. 0 means no limit."""

    client_metrics: bool = False
    """Whether clients may push their metrics (KIP-714), which go to the topic __client_metrics.
    Clients begin to ask for subscriptions as soon as it is on. Set it on all brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """A topic that is created at the start if it does not exist."""

    name: str
    """The name of the topic."""

    partitions: int | None = None
    """The number of partitions; the broker's default if none is given."""

    replication_factor: int | None = None
    """The replication factor; the broker's default if none is given."""

    config: Mapping[str, str] = field(default_factory=dict)
    """The configs of the topic, under Kafka's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a broker."""

    broker: BrokerSettings = field(default_factory=BrokerSettings)
    """The identity and addresses of this broker, and what clients may do."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    """The cluster that the broker belongs to."""

    storage: StorageSettings = field(default_factory=StorageSettings)
    """How logs are stored; topics can override most of these."""

    performance: PerformanceSettings = field(default_factory=PerformanceSettings)
    """Limits that keep one client from starving the others, and performance tuning."""

    replication: ReplicationSettings = field(default_factory=ReplicationSettings)
    """How partitions are replicated, and when a replica is in sync."""

    groups: GroupSettings = field(default_factory=GroupSettings)
    """How consumer groups behave."""

    share: ShareSettings = field(default_factory=ShareSettings)
    """How share groups behave."""

    transactions: TransactionSettings = field(default_factory=TransactionSettings)
    """How long transactions may take."""

    security: SecuritySettings = field(default_factory=SecuritySettings)
    """Which clients may connect, and what they may do."""

    observability: ObservabilitySettings = field(default_factory=ObservabilitySettings)
    """What the broker tells operators about itself and its clients."""

    listeners: tuple[ListenerSettings, ...] = ()
    """The addresses on which the broker accepts clients. If empty, the broker has one listener
    without encryption, PLAINTEXT, at `broker.host` and `broker.port`."""

    topics: tuple[TopicSettings, ...] = ()
    """Topics that are created at the start if they do not exist."""

    @property
    def client_listeners(self) -> tuple[ListenerSettings, ...]:
        """The listeners for clients: those of the section, or the one of `broker`."""
        if self.listeners:
            return self.listeners
        broker = self.broker
        return (
            ListenerSettings(
                name="PLAINTEXT",
                host=broker.host,
                port=broker.port,
                advertised_host=broker.advertised_host,
                advertised_port=broker.advertised_port,
            ),
        )

    @property
    def is_secured(self) -> bool:
        """Whether clients authenticate, use TLS, or need rights."""
        guarded = any(each.protocol != "PLAINTEXT" for each in self.listeners)
        return guarded or self.security.authorizer != "none"
