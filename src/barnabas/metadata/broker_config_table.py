"""The read-only broker configs: settings of the process under Kafka's names.

Tools read many more of Kafka's configs than a broker here has settings. This table has those that
apply here, with their current values.
"""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.metadata.config_definition import (
    Rule,
    boolean,
    int16,
    int32,
    int64,
    listing,
    text,
)
from barnabas.model.settings import HOUR_MS, MINUTE_MS, SECOND_MS, UNLIMITED, Settings

Read = Callable[[Settings], object]


@dataclass(frozen=True, slots=True)
class StaticConfig:
    """A config that mirrors one setting."""

    name: str
    """Kafka's name."""

    rule: Rule
    """The rule for its values."""

    read: Read
    """Return the value that a broker with these settings has."""

    documentation: str
    """One sentence on what it does."""


def listener(name: str, host: str, port: int) -> str:
    """Return an address in the form of Kafka's listeners."""
    bracketed = f"[{host}]" if ":" in host else host
    return f"{name}://{bracketed}:{port}"


def _listeners(settings: Settings) -> str:
    return ",".join(listener(each.name, each.host, each.port) for each in settings.client_listeners)


def _advertised(settings: Settings) -> str:
    return ",".join(
        listener(
            each.name,
            each.advertised_host or each.host,
            each.port if each.advertised_port is None else each.advertised_port,
        )
        for each in settings.client_listeners
    )


def _roles(settings: Settings) -> str:
    roles = settings.cluster.roles
    return "broker,controller" if roles == "both" else roles


def _in_units(duration_ms: int, unit_ms: int) -> int:
    """Return a duration in a larger unit, rounded up; -1 stays no limit at all."""
    return duration_ms if duration_ms == UNLIMITED else -(-duration_ms // unit_ms)


STATIC = (
    StaticConfig(
        "advertised.listeners",
        listing(),
        _advertised,
        "The address that clients connect to.",
    ),
    StaticConfig(
        "auto.create.topics.enable",
        boolean(),
        lambda s: s.broker.auto_create_topics,
        "Whether a topic is created when a client first names it.",
    ),
    StaticConfig(
        "allow.everyone.if.no.acl.found",
        boolean(),
        lambda s: s.security.allow_everyone_if_no_acl,
        "Whether a resource that no ACL names is open to every client.",
    ),
    StaticConfig(
        "authorizer.class.name",
        text(),
        lambda s: "" if s.security.authorizer == "none" else s.security.authorizer,
        "The authorizer, which decides what clients may do; empty if there is none.",
    ),
    StaticConfig("broker.id", int32(0), lambda s: s.broker.node_id, "The number of this broker."),
    StaticConfig(
        "broker.rack",
        text(),
        lambda s: s.broker.rack or "",
        "The rack of this broker.",
    ),
    StaticConfig(
        "connections.max.idle.ms",
        int64(0),
        lambda s: s.performance.connection_idle_ms,
        "A connection without requests for this long is closed.",
    ),
    StaticConfig(
        "default.replication.factor",
        int32(1),
        lambda s: s.replication.default_replication_factor,
        "The replication factor of a topic that is created without one.",
    ),
    StaticConfig(
        "delegation.token.expiry.check.interval.ms",
        int64(1),
        lambda s: s.security.delegation_token_expiry_check_ms,
        "How often expired delegation tokens are removed.",
    ),
    StaticConfig(
        "delegation.token.expiry.time.ms",
        int64(1),
        lambda s: s.security.delegation_token_expiry_ms,
        "How long a delegation token can be used before it must be renewed.",
    ),
    StaticConfig(
        "delegation.token.max.lifetime.ms",
        int64(1),
        lambda s: s.security.delegation_token_max_lifetime_ms,
        "The maximum lifetime of a delegation token.",
    ),
    StaticConfig(
        "delete.topic.enable",
        boolean(),
        lambda s: s.broker.delete_topics,
        "Whether clients may delete topics.",
    ),
    StaticConfig(
        "fetch.max.bytes",
        int32(1024),
        lambda s: s.performance.max_fetch_bytes,
        "The largest response to a fetch.",
    ),
    StaticConfig("listeners", listing(), _listeners, "The address that the broker listens on."),
    StaticConfig(
        "log.cleaner.backoff.ms",
        int64(0),
        lambda s: s.storage.compaction_check_interval_ms,
        "How often the broker looks for logs to compact.",
    ),
    StaticConfig("log.dir", text(), lambda s: s.broker.data_dir, "The folder that holds the logs."),
    StaticConfig(
        "log.dirs", listing(), lambda s: s.broker.data_dir, "The folder that holds the logs."
    ),
    StaticConfig(
        "log.retention.check.interval.ms",
        int64(1),
        lambda s: s.storage.retention_check_interval_ms,
        "How often the broker looks for segments to delete.",
    ),
    StaticConfig(
        "max.connection.creation.rate",
        int32(0),
        lambda s: s.performance.max_connection_rate,
        "How many connections per second are accepted on average; 0 is no limit.",
    ),
    StaticConfig(
        "max.connections",
        int32(0),
        lambda s: s.performance.max_connections,
        "Connections beyond this are refused.",
    ),
    StaticConfig(
        "max.connections.per.ip",
        int32(0),
        lambda s: s.performance.max_connections_per_ip,
        "Connections from one address beyond this are refused; 0 is no limit.",
    ),
    StaticConfig(
        "max.connections.per.ip.overrides",
        text(),
        lambda s: ",".join(s.performance.max_connections_per_ip_overrides),
        "Other limits for some addresses.",
    ),
    StaticConfig(
        "max.incremental.fetch.session.cache.slots",
        int32(0),
        lambda s: s.performance.fetch_session_slots,
        "The largest number of incremental fetch sessions.",
    ),
    StaticConfig("node.id", int32(0), lambda s: s.broker.node_id, "The number of this broker."),
    StaticConfig(
        "num.partitions",
        int32(1),
        lambda s: s.broker.default_partitions,
        "The number of partitions of a topic that is created without one.",
    ),
    StaticConfig(
        "producer.id.expiration.ms",
        int64(1),
        lambda s: s.storage.producer_id_expiration_ms,
        "The state of an idempotent producer expires when it sends nothing for this long.",
    ),
    StaticConfig(
        "queued.max.request.bytes",
        int64(-1),
        lambda s: s.performance.max_buffered_bytes or -1,
        "Half-read requests and unread responses take no more memory than this; -1 is no limit.",
    ),
    StaticConfig(
        "replica.lag.time.max.ms",
        int64(0),
        lambda s: s.replication.replica_lag_max_ms,
        "A replica that has not caught up for this long is out of sync.",
    ),
    StaticConfig(
        "socket.listen.backlog.size",
        int32(1),
        lambda s: s.performance.backlog,
        "How many connections may wait to be accepted.",
    ),
    StaticConfig(
        "socket.receive.buffer.bytes",
        int32(-1),
        # Kafka writes "as the system likes" as -1, our settings as 0.
        lambda s: s.performance.socket_receive_buffer_bytes or -1,
        "The receive buffer of a socket; -1 lets the operating system tune it.",
    ),
    StaticConfig(
        "socket.request.max.bytes",
        int32(1),
        lambda s: s.performance.max_request_bytes,
        "The connection of a larger request is closed.",
    ),
    StaticConfig(
        "socket.send.buffer.bytes",
        int32(-1),
        lambda s: s.performance.socket_send_buffer_bytes or -1,
        "The send buffer of a socket; -1 lets the operating system tune it.",
    ),
    StaticConfig(
        "auto.leader.rebalance.enable",
        boolean(),
        lambda s: s.cluster.leader_imbalance_check_interval_ms > 0,
        "Whether leadership moves back to preferred leaders.",
    ),
    StaticConfig(
        "broker.heartbeat.interval.ms",
        int32(1),
        lambda s: s.cluster.broker_heartbeat_interval_ms,
        "How often a broker sends a heartbeat to the controller.",
    ),
    StaticConfig(
        "broker.session.timeout.ms",
        int32(1),
        lambda s: s.cluster.broker_session_timeout_ms,
        "A broker that sends no heartbeat for this long is fenced.",
    ),
    StaticConfig(
        "controlled.shutdown.enable",
        boolean(),
        lambda _: True,
        "Whether a broker that stops moves its leaderships to other brokers first.",
    ),
    StaticConfig(
        "controller.quorum.election.timeout.ms",
        int32(1),
        lambda s: s.cluster.election_timeout_ms,
        "How long a candidate waits for votes before it tries again.",
    ),
    StaticConfig(
        "controller.quorum.fetch.timeout.ms",
        int32(1),
        lambda s: s.cluster.fetch_timeout_ms,
        "A voter without contact to the quorum's leader for this long starts an election.",
    ),
    StaticConfig(
        "controller.quorum.voters",
        listing(),
        lambda s: ",".join(s.cluster.voters),
        "The nodes that form the metadata quorum.",
    ),
    StaticConfig(
        "group.consumer.assignors",
        listing(),
        lambda _: "uniform,range",
        "The assignors of `consumer` groups.",
    ),
    StaticConfig(
        "group.consumer.heartbeat.interval.ms",
        int32(1),
        lambda s: s.groups.consumer_heartbeat_interval_ms,
        "How often members of `consumer` groups send heartbeats.",
    ),
    StaticConfig(
        "group.consumer.max.size",
        int32(1),
        lambda s: s.groups.max_size,
        "The largest number of members of a `consumer` group.",
    ),
    *(
        StaticConfig(
            f"group.consumer.{name}session.timeout.ms",
            int32(1),
            lambda s: s.groups.consumer_session_timeout_ms,
            "The session timeout of members of `consumer` groups.",
        )
        for name in ("", "min.", "max.")
    ),
    StaticConfig(
        "group.coordinator.rebalance.protocols",
        listing(),
        lambda _: "classic,consumer",
        "The kinds of groups that are served.",
    ),
    StaticConfig(
        "group.initial.rebalance.delay.ms",
        int32(0),
        lambda s: s.groups.initial_rebalance_delay_ms,
        "How long a new classic group waits for more members.",
    ),
    StaticConfig(
        "group.max.session.timeout.ms",
        int32(1),
        lambda s: s.groups.max_session_timeout_ms,
        "The longest session timeout that a member of a classic group may request.",
    ),
    StaticConfig(
        "group.max.size",
        int32(1),
        lambda s: s.groups.max_size,
        "The largest number of members of a classic group.",
    ),
    StaticConfig(
        "group.min.session.timeout.ms",
        int32(1),
        lambda s: s.groups.min_session_timeout_ms,
        "The shortest session timeout that a member of a classic group may request.",
    ),
    StaticConfig(
        "leader.imbalance.check.interval.seconds",
        int64(1),
        lambda s: s.cluster.leader_imbalance_check_interval_ms // SECOND_MS,
        "How often leadership moves back to preferred leaders.",
    ),
    StaticConfig(
        "log.cleaner.enable", boolean(), lambda _: True, "Whether compacted topics are compacted."
    ),
    StaticConfig(
        "log.retention.hours",
        int32(-1),
        lambda s: _in_units(s.storage.retention_ms, HOUR_MS),
        "log.retention.ms at the broker's start, in hours.",
    ),
    StaticConfig(
        "log.retention.minutes",
        int32(-1),
        lambda s: _in_units(s.storage.retention_ms, MINUTE_MS),
        "log.retention.ms at the broker's start, in minutes.",
    ),
    StaticConfig(
        "log.roll.hours",
        int32(1),
        lambda s: _in_units(s.storage.segment_ms, HOUR_MS),
        "log.roll.ms at the broker's start, in hours.",
    ),
    StaticConfig(
        "metadata.log.dir",
        text(),
        lambda s: s.broker.data_dir,
        "The folder of the metadata log.",
    ),
    StaticConfig(
        "num.replica.fetchers",
        int32(1),
        lambda s: s.replication.fetchers,
        "How many connections a broker uses to replicate from each other broker.",
    ),
    StaticConfig(
        "offset.metadata.max.bytes",
        int32(0),
        lambda s: s.groups.offset_metadata_max_bytes,
        "The largest metadata string that a consumer may commit with an offset.",
    ),
    StaticConfig(
        "offsets.retention.check.interval.ms",
        int64(1),
        lambda s: s.groups.offsets_retention_check_ms,
        "How often the broker looks for expired offsets.",
    ),
    StaticConfig(
        "offsets.retention.minutes",
        int32(1),
        lambda s: _in_units(s.groups.offsets_retention_ms, MINUTE_MS),
        "How long the offsets of a group are kept after its last member left.",
    ),
    StaticConfig(
        "offsets.topic.num.partitions",
        int32(1),
        lambda s: s.groups.offsets_partitions,
        "The partitions of __consumer_offsets.",
    ),
    StaticConfig(
        "offsets.topic.replication.factor",
        int16(1),
        lambda s: s.replication.internal_replication_factor,
        "The replicas of __consumer_offsets, or as many as there are brokers when it is created.",
    ),
    StaticConfig(
        "process.roles", listing(), _roles, "Whether this node serves clients, and votes."
    ),
    StaticConfig(
        "replica.fetch.response.max.bytes",
        int32(0),
        lambda s: s.replication.fetch_bytes,
        "The most bytes that a follower fetches at once.",
    ),
    StaticConfig(
        "replica.fetch.wait.max.ms",
        int32(0),
        lambda s: s.replication.fetch_wait_ms,
        "How long a leader holds a follower's fetch while there are no new records.",
    ),
    StaticConfig(
        "group.share.delivery.count.limit",
        int32(2, 10),
        lambda s: s.share.delivery_count_limit,
        "How often a record is delivered before a share group gives up on it.",
    ),
    StaticConfig(
        "group.share.heartbeat.interval.ms",
        int32(1),
        lambda s: s.share.heartbeat_interval_ms,
        "How often members of share groups send heartbeats.",
    ),
    StaticConfig(
        "group.share.max.record.lock.duration.ms",
        int32(1),
        lambda s: s.share.max_record_lock_duration_ms,
        "The longest lock duration that a share group may have.",
    ),
    StaticConfig(
        "group.share.max.share.sessions",
        int32(0),
        lambda s: s.share.max_sessions,
        "How many share sessions a broker has at most.",
    ),
    StaticConfig(
        "group.share.max.size",
        int32(1),
        lambda s: s.share.max_size,
        "The largest number of members of a share group.",
    ),
    StaticConfig(
        "group.share.min.record.lock.duration.ms",
        int32(1),
        lambda s: s.share.min_record_lock_duration_ms,
        "The shortest lock duration that a share group may have.",
    ),
    StaticConfig(
        "group.share.partition.max.record.locks",
        int32(100, 4000),
        lambda s: s.share.partition_max_record_locks,
        "How many records of a partition the consumers of a share group may keep at a time.",
    ),
    StaticConfig(
        "group.share.record.lock.duration.ms",
        int32(1),
        lambda s: s.share.record_lock_duration_ms,
        "How long a consumer may keep a record without an acknowledgement.",
    ),
    StaticConfig(
        "group.share.session.timeout.ms",
        int32(1),
        lambda s: s.share.session_timeout_ms,
        "The session timeout of members of share groups.",
    ),
    StaticConfig(
        "share.coordinator.snapshot.update.records.per.snapshot",
        int32(0),
        lambda s: s.share.updates_per_snapshot,
        "After this many changes the whole state of a share partition is written again.",
    ),
    StaticConfig(
        "share.coordinator.state.topic.num.partitions",
        int32(1),
        lambda s: s.share.state_partitions,
        "The partitions of __share_group_state.",
    ),
    StaticConfig(
        "share.coordinator.state.topic.prune.interval.ms",
        int32(1),
        lambda s: s.share.tidy_interval_ms,
        "How often the part of __share_group_state that is no longer needed is deleted.",
    ),
    StaticConfig(
        "share.coordinator.state.topic.replication.factor",
        int16(1),
        lambda s: s.replication.internal_replication_factor,
        "The replicas of __share_group_state, or as many as there are brokers when it is created.",
    ),
    StaticConfig(
        "share.coordinator.write.timeout.ms",
        int32(1),
        lambda s: s.share.write_timeout_ms,
        "How long a broker tries to reach the coordinator of a share partition.",
    ),
    StaticConfig(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        int32(1),
        lambda s: s.transactions.abort_check_interval_ms,
        "How often the broker looks for transactions that exceed their timeout.",
    ),
    StaticConfig(
        "super.users",
        text(),
        lambda s: ";".join(s.security.super_users),
        "The principals that may do everything.",
    ),
    StaticConfig(
        "transaction.max.timeout.ms",
        int32(1),
        lambda s: s.transactions.max_timeout_ms,
        "The longest timeout that a transactional producer may request.",
    ),
    StaticConfig(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        int32(1),
        lambda s: s.transactions.id_expiration_check_ms,
        "How often the broker looks for expired transactional ids.",
    ),
    StaticConfig(
        "transaction.state.log.num.partitions",
        int32(1),
        lambda s: s.transactions.log_partitions,
        "The partitions of __transaction_state.",
    ),
    StaticConfig(
        "transaction.state.log.replication.factor",
        int16(1),
        lambda s: s.replication.internal_replication_factor,
        "The replicas of __transaction_state, or as many as there are brokers when it is created.",
    ),
    StaticConfig(
        "transactional.id.expiration.ms",
        int32(1),
        lambda s: s.transactions.id_expiration_ms,
        "How long an unused transactional id is kept.",
    ),
)
