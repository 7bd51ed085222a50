"""The table that maps configuration keys to fields of the settings, and parses their values.

Keys have no unit, because values do; fields have one (see `barnabas.model.settings`). The file,
environment variables and flags accept only the keys in this table.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address

from barnabas.config.units import (
    format_size,
    format_time,
    parse_boolean,
    parse_integer,
    parse_size,
    parse_time,
)
from barnabas.controller.topic_decisions import PARTITIONS_MAX
from barnabas.metadata.topic_config_table import SEGMENT_BYTES_MIN
from barnabas.model.settings import UNLIMITED
from barnabas.protocol.apis import APIS

API_NAMES = frozenset(api.name for api in APIS.values())
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
TOKEN_LIFETIME_MAX_MS = 10 * 365 * 24 * 3600 * 1000
"""Ten years: longer than any certificate, and far from the end of the calendar."""
PORT_MAX = 65_535

TOPICS = "topics"
"""A section with nested keys; `barnabas.config.topic_settings` reads it."""

LISTENERS = "listeners"
"""A section with nested keys; `barnabas.config.listener_settings` reads it."""

Raw = str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One value from the file, an environment variable or a flag."""

    path: tuple[str, ...]
    """The path of keys to the value."""

    raw: Raw
    """The value as text."""

    origin: str
    """Where the value was set, for error messages."""


class Kind(Enum):
    """The type of a value, and how to write it."""

    TEXT = "text"
    INTEGER = "a whole number such as 4"
    RATIO = "a number between 0 and 1 such as 0.5"
    BOOLEAN = "true or false"
    SIZE = "a size such as 512MB"
    TIME = "a time such as 30s or 7d"
    ADDRESSES = "a list of host:port such as [broker-1:9092, broker-2:9092]"
    TEXTS = "a list such as [User:admin, User:operator]"
    HOST_LIMITS = "a list of address:number such as [10.0.0.1:100]"
    ADDRESS = "an address such as 127.0.0.1:9644 or [::1]:9644"
    API_TIMES = "a list of API:time such as [Fetch:1s, CreateTopics:5s]"
    VOTERS = "a list of id@host:port such as [1@broker-1:9192, 2@broker-2:9192, 3@broker-3:9192]"


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key."""

    section: str
    """The section of the key."""

    name: str
    """The name in the file."""

    field: str
    """The field of the section's settings."""

    kind: Kind
    """The type of its value."""

    least: int = 0
    """The smallest allowed number."""

    most: int = LONG_MAX
    """The largest allowed number."""

    choices: tuple[str, ...] = ()
    """The allowed texts; empty if any text is allowed."""

    optional: bool = False
    """Whether it may be empty."""

    @property
    def path(self) -> str:
        """The dotted name, as in flags and messages."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"BARNABAS_{self.section}_{self.name}".upper()

    def read(self, raw: Raw) -> object:
        """Return the typed value, or raise ValueError with what to write instead."""
        if raw is None or raw == "":
            if self.optional:
                return None
            raise ValueError(f"write {self.remedy}")
        try:
            value = _READERS[self.kind](raw)
        except ValueError:
            raise ValueError(f"write {self.remedy}") from None
        self._check(value)
        return value

    @property
    def remedy(self) -> str:
        """What to write, as text for an error message."""
        if self.choices:
            return "one of " + ", ".join(f'"{choice}"' for choice in self.choices)
        unlimited = ", or unlimited" if self.least == UNLIMITED else ""
        return self.kind.value + unlimited

    def _check(self, value: object) -> None:
        if self.choices and value not in self.choices:
            raise ValueError(f"write {self.remedy}")
        if self.kind in _FORMATS and isinstance(value, int):
            shown = _FORMATS[self.kind]
            if value < self.least:
                raise ValueError(f"write {shown(self.least)} or more")
            if value > self.most:
                raise ValueError(f"write {shown(self.most)} or less")


def _read_text(raw: Raw) -> str:
    if raw is None or isinstance(raw, tuple):
        raise ValueError(raw)  # the user's value is wrong, not the Python type
    return raw.strip()


def _read_ratio(raw: Raw) -> float:
    ratio = float(_read_text(raw))
    if not 0 <= ratio <= 1:
        raise ValueError(raw)
    return ratio


def _read_list(raw: Raw, form: str) -> tuple[str, ...]:
    """Return the items of a list; each must match the form, whose first group is a port."""
    parts = raw.split(",") if isinstance(raw, str) else raw or ()
    items = tuple(part.strip() for part in parts)
    for item in items:
        found = re.fullmatch(form, item, re.ASCII)
        if found is None or not 0 < int(found[1]) <= PORT_MAX:
            raise ValueError(raw)
    return items


def _read_texts(raw: Raw) -> tuple[str, ...]:
    parts = raw.split(",") if isinstance(raw, str) else raw or ()
    return tuple(part.strip() for part in parts if part.strip())


def _read_host_limits(raw: Raw) -> tuple[str, ...]:
    items = _read_texts(raw)
    for item in items:
        host, _, limit = item.rpartition(":")
        ip_address(host.strip("[]"))
        if not 0 < parse_integer(limit) <= INT_MAX:
            raise ValueError(raw)
    return items


def _read_address(raw: Raw) -> str:
    text = _read_text(raw)
    host, _, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not host or (":" in host and not is_bracketed):
        raise ValueError(raw)
    if not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError(raw)
    return text


def _read_api_times(raw: Raw) -> tuple[str, ...]:
    items = _read_texts(raw)
    for item in items:
        name, _, time = item.partition(":")
        if name not in API_NAMES or parse_time(time) < 0:
            raise ValueError(raw)
    return items


_READERS: dict[Kind, Callable[[Raw], object]] = {
    Kind.TEXT: _read_text,
    Kind.INTEGER: lambda raw: parse_integer(_read_text(raw)),
    Kind.RATIO: _read_ratio,
    Kind.BOOLEAN: lambda raw: parse_boolean(_read_text(raw)),
    Kind.SIZE: lambda raw: parse_size(_read_text(raw)),
    Kind.TIME: lambda raw: parse_time(_read_text(raw)),
    Kind.ADDRESSES: lambda raw: _read_list(raw, r"\S+:([0-9]{1,5})"),
    Kind.TEXTS: _read_texts,
    Kind.HOST_LIMITS: _read_host_limits,
    Kind.ADDRESS: _read_address,
    Kind.API_TIMES: _read_api_times,
    Kind.VOTERS: lambda raw: _read_list(raw, r"[0-9]{1,9}@[^\s@]+:([0-9]{1,5})"),
}
_FORMATS: dict[Kind, Callable[[int], str]] = {
    Kind.INTEGER: str,
    Kind.SIZE: format_size,
    Kind.TIME: format_time,
}

TEXT, INTEGER, RATIO, BOOLEAN = Kind.TEXT, Kind.INTEGER, Kind.RATIO, Kind.BOOLEAN
SIZE, TIME, ADDRESSES, TEXTS = Kind.SIZE, Kind.TIME, Kind.ADDRESSES, Kind.TEXTS
HOST_LIMITS, ADDRESS, API_TIMES = Kind.HOST_LIMITS, Kind.ADDRESS, Kind.API_TIMES
VOTERS = Kind.VOTERS

TABLE = (
    Key("broker", "id", "node_id", INTEGER, 0, INT_MAX),
    Key("broker", "host", "host", TEXT),
    Key("broker", "port", "port", INTEGER, 0, PORT_MAX),
    Key("broker", "advertised_host", "advertised_host", TEXT, optional=True),
    Key("broker", "advertised_port", "advertised_port", INTEGER, 1, PORT_MAX, optional=True),
    Key("broker", "data_dir", "data_dir", TEXT),
    Key("broker", "rack", "rack", TEXT, optional=True),
    Key("broker", "auto_create_topics", "auto_create_topics", BOOLEAN),
    Key("broker", "default_partitions", "default_partitions", INTEGER, 1, PARTITIONS_MAX),
    Key("broker", "delete_topics", "delete_topics", BOOLEAN),
    Key("cluster", "cluster_id", "cluster_id", TEXT, optional=True),
    Key("cluster", "bootstrap_servers", "bootstrap_servers", ADDRESSES),
    Key("cluster", "roles", "roles", TEXT, choices=("both", "broker", "controller")),
    Key("cluster", "host", "host", TEXT),
    Key("cluster", "port", "port", INTEGER, 0, PORT_MAX),
    Key("cluster", "advertised_host", "advertised_host", TEXT, optional=True),
    Key("cluster", "tls_certificate", "tls_certificate", TEXT, optional=True),
    Key("cluster", "tls_key", "tls_key", TEXT, optional=True),
    Key("cluster", "tls_authorities", "tls_authorities", TEXT, optional=True),
    Key("cluster", "tls_peer_names", "tls_peer_names", TEXTS),
    Key("cluster", "allow_plaintext_peers", "allow_plaintext_peers", BOOLEAN),
    Key("cluster", "voters", "voters", VOTERS),
    Key("cluster", "election_timeout", "election_timeout_ms", TIME, 50, INT_MAX),
    Key("cluster", "fetch_timeout", "fetch_timeout_ms", TIME, 50, INT_MAX),
    Key("cluster", "broker_session_timeout", "broker_session_timeout_ms", TIME, 100, INT_MAX),
    Key("cluster", "broker_heartbeat_interval", "broker_heartbeat_interval_ms", TIME, 10, INT_MAX),
    Key("cluster", "snapshot_after_records", "snapshot_after_records", INTEGER, 1, INT_MAX),
    Key(
        "cluster",
        "leader_imbalance_check_interval",
        "leader_imbalance_check_interval_ms",
        TIME,
    ),
    Key("storage", "segment_size", "segment_bytes", SIZE, SEGMENT_BYTES_MIN, INT_MAX),
    Key("storage", "segment_time", "segment_ms", TIME, 1),
    Key("storage", "retention_time", "retention_ms", TIME, UNLIMITED),
    Key("storage", "retention_size", "retention_bytes", SIZE, UNLIMITED),
    Key("storage", "flush", "flush", TEXT, choices=("ack", "interval")),
    Key("storage", "fsync_interval", "fsync_interval_ms", TIME, 1),
    Key("storage", "index_interval", "index_interval_bytes", SIZE, 0, INT_MAX),
    Key("storage", "index_size", "index_bytes", SIZE, 4, INT_MAX),
    Key(
        "storage",
        "cleanup_policy",
        "cleanup_policy",
        TEXT,
        choices=("delete", "compact", "compact,delete"),
    ),
    Key("storage", "retention_check_interval", "retention_check_interval_ms", TIME, 1),
    Key("storage", "compaction_check_interval", "compaction_check_interval_ms", TIME, 1),
    Key("storage", "min_cleanable_dirty_ratio", "min_cleanable_dirty_ratio", RATIO),
    Key("storage", "delete_retention", "delete_retention_ms", TIME),
    Key("storage", "min_compaction_lag", "min_compaction_lag_ms", TIME),
    Key("storage", "file_delete_delay", "file_delete_delay_ms", TIME),
    Key("storage", "producer_id_expiration", "producer_id_expiration_ms", TIME, 1),
    Key("storage", "flush_threads", "flush_threads", INTEGER, 1, 1024),
    Key("storage", "verify_on_start", "verify_on_start", BOOLEAN),
    Key("storage", "scrub_interval", "scrub_interval_ms", TIME),
    Key("performance", "max_connections", "max_connections", INTEGER, 1, INT_MAX),
    Key("performance", "max_connections_per_ip", "max_connections_per_ip", INTEGER, 0, INT_MAX),
    Key(
        "performance",
        "max_connections_per_ip_overrides",
        "max_connections_per_ip_overrides",
        HOST_LIMITS,
    ),
    Key("performance", "max_connection_rate", "max_connection_rate", INTEGER, 0, INT_MAX),
    Key("performance", "socket_send_buffer", "socket_send_buffer_bytes", SIZE, 0, INT_MAX),
    Key("performance", "socket_receive_buffer", "socket_receive_buffer_bytes", SIZE, 0, INT_MAX),
    Key("performance", "max_message_size", "max_message_bytes", SIZE, 1, INT_MAX),
    Key("performance", "max_request_size", "max_request_bytes", SIZE, 1024, INT_MAX),
    Key("performance", "max_buffered_size", "max_buffered_bytes", SIZE),
    Key("performance", "connection_idle_time", "connection_idle_ms", TIME, 1),
    Key("performance", "request_stall_time", "request_stall_ms", TIME, 1),
    Key("performance", "backlog", "backlog", INTEGER, 1, INT_MAX),
    Key("performance", "max_fetch_size", "max_fetch_bytes", SIZE, 1024, INT_MAX),
    Key("performance", "fetch_session_slots", "fetch_session_slots", INTEGER, 0, INT_MAX),
    Key("performance", "sendfile_threshold", "sendfile_threshold_bytes", SIZE),
    Key("performance", "producer_quota", "producer_quota_bytes_per_second", SIZE),
    Key("performance", "consumer_quota", "consumer_quota_bytes_per_second", SIZE),
    Key("performance", "batch_size", "batch_bytes", SIZE),
    Key("performance", "linger_time", "linger_ms", TIME),
    Key("performance", "slow_event_time", "slow_event_ms", TIME),
    Key("replication", "default_replication_factor", "default_replication_factor", INTEGER, 1, 32),
    Key("replication", "min_insync_replicas", "min_insync_replicas", INTEGER, 1, 32),
    Key("replication", "replica_lag_time_max", "replica_lag_max_ms", TIME, 1),
    Key("replication", "replica_lag_records_max", "replica_lag_max_records", INTEGER),
    Key("replication", "unclean_leader_election", "unclean_leader_election", BOOLEAN),
    Key(
        "replication",
        "internal_replication_factor",
        "internal_replication_factor",
        INTEGER,
        1,
        32,
    ),
    Key("replication", "fetchers", "fetchers", INTEGER, 1, 64),
    Key("replication", "fetch_wait", "fetch_wait_ms", TIME, 1, INT_MAX),
    Key("replication", "fetch_size", "fetch_bytes", SIZE, 1024, INT_MAX),
    Key("replication", "catch_up_rate", "catch_up_bytes_per_second", SIZE),
    Key("groups", "offsets_partitions", "offsets_partitions", INTEGER, 1, 1000),
    Key("groups", "offsets_retention", "offsets_retention_ms", TIME, 1),
    Key("groups", "offsets_retention_check_interval", "offsets_retention_check_ms", TIME, 1),
    Key("groups", "offset_metadata_max", "offset_metadata_max_bytes", SIZE, 0, INT_MAX),
    Key("groups", "max_size", "max_size", INTEGER, 1, INT_MAX),
    Key("groups", "min_session_timeout", "min_session_timeout_ms", TIME, 1),
    Key("groups", "max_session_timeout", "max_session_timeout_ms", TIME, 1),
    Key("groups", "initial_rebalance_delay", "initial_rebalance_delay_ms", TIME),
    Key("groups", "heartbeat_wait", "heartbeat_wait_ms", TIME, 0, 10 * 60_000),
    Key("groups", "consumer_session_timeout", "consumer_session_timeout_ms", TIME, 1),
    Key("groups", "consumer_heartbeat_interval", "consumer_heartbeat_interval_ms", TIME, 1),
    Key("groups", "consumer_regex_refresh", "consumer_regex_refresh_interval_ms", TIME, 1),
    Key("share", "state_partitions", "state_partitions", INTEGER, 1, 1000),
    Key("share", "updates_per_snapshot", "updates_per_snapshot", INTEGER, 0, INT_MAX),
    Key("share", "tidy_interval", "tidy_interval_ms", TIME, 1),
    Key("share", "write_timeout", "write_timeout_ms", TIME, 1, INT_MAX),
    Key("share", "record_lock_duration", "record_lock_duration_ms", TIME, 1, INT_MAX),
    Key("share", "min_record_lock_duration", "min_record_lock_duration_ms", TIME, 1, INT_MAX),
    Key("share", "max_record_lock_duration", "max_record_lock_duration_ms", TIME, 1, INT_MAX),
    Key("share", "delivery_count_limit", "delivery_count_limit", INTEGER, 2, 10),
    Key("share", "partition_max_record_locks", "partition_max_record_locks", INTEGER, 100, 4000),
    Key("share", "max_sessions", "max_sessions", INTEGER, 0, INT_MAX),
    Key("share", "max_size", "max_size", INTEGER, 1, INT_MAX),
    Key("share", "session_timeout", "session_timeout_ms", TIME, 1, INT_MAX),
    Key("share", "heartbeat_interval", "heartbeat_interval_ms", TIME, 1, INT_MAX),
    Key("transactions", "log_partitions", "log_partitions", INTEGER, 1, 1000),
    Key("transactions", "max_timeout", "max_timeout_ms", TIME, 1),
    Key("transactions", "id_expiration", "id_expiration_ms", TIME, 1),
    Key("transactions", "abort_check_interval", "abort_check_interval_ms", TIME, 1),
    Key("transactions", "id_expiration_check_interval", "id_expiration_check_ms", TIME, 1),
    Key("security", "authorizer", "authorizer", TEXT, choices=("none", "acl")),
    Key("security", "super_users", "super_users", TEXTS),
    Key("security", "allow_everyone_if_no_acl", "allow_everyone_if_no_acl", BOOLEAN),
    Key("security", "reauthentication_time", "reauthentication_ms", TIME),
    Key("security", "sasl_max_receive_size", "sasl_receive_bytes_max", SIZE, 1024, INT_MAX),
    Key("security", "failed_authentication_delay", "failed_authentication_delay_ms", TIME),
    Key("security", "handshake_timeout", "handshake_timeout_ms", TIME, 1),
    Key("security", "certificate_check_interval", "certificate_check_ms", TIME),
    Key("security", "oauth_keys", "oauth_keys", TEXT, optional=True),
    Key("security", "oauth_issuer", "oauth_issuer", TEXT, optional=True),
    Key("security", "oauth_audience", "oauth_audience", TEXT, optional=True),
    Key("security", "oauth_principal_claim", "oauth_principal_claim", TEXT),
    Key("security", "oauth_clock_skew", "oauth_clock_skew_ms", TIME),
    Key(
        "security",
        "delegation_token_secret_file",
        "delegation_token_secret_file",
        TEXT,
        optional=True,
    ),
    Key(
        "security",
        "delegation_token_secret_variable",
        "delegation_token_secret_variable",
        TEXT,
        optional=True,
    ),
    Key(
        "security",
        "delegation_token_max_lifetime",
        "delegation_token_max_lifetime_ms",
        TIME,
        1,
        TOKEN_LIFETIME_MAX_MS,
    ),
    Key(
        "security",
        "delegation_token_expiry_time",
        "delegation_token_expiry_ms",
        TIME,
        1,
        TOKEN_LIFETIME_MAX_MS,
    ),
    Key(
        "security",
        "delegation_token_expiry_check_interval",
        "delegation_token_expiry_check_ms",
        TIME,
        1,
    ),
    Key("security", "audit_file", "audit_file", TEXT, optional=True),
    Key("security", "audit_topic", "audit_topic", TEXT, optional=True),
    Key("observability", "http_listen", "http_listen", ADDRESS, optional=True),
    Key("observability", "slow_request_time", "slow_request_ms", TIME),
    Key("observability", "slow_request_times", "slow_request_times", API_TIMES),
    Key("observability", "partition_series_max", "partition_series_max", INTEGER, 0, INT_MAX),
    Key("observability", "log_lines_max", "log_lines_max", INTEGER, 0, INT_MAX),
    Key("observability", "client_metrics", "client_metrics", BOOLEAN),
)

BY_PATH = {(key.section, key.name): key for key in TABLE}
BY_VARIABLE = {key.variable: key for key in TABLE}
SECTIONS = tuple(dict.fromkeys(key.section for key in TABLE))
