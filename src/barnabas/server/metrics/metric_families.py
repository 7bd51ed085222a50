"""Every metric of a broker: its name, its type, its labels, and what it means.

Kafka's names are those that Strimzi's JMX rules make of Kafka's beans, so that their dashboards
work. A bean that ends in "PerSec" is spelled in two other ways as well, which a scrape can ask for
with `?names=`: Strimzi's reporter keeps the ending, and Confluent's rules leave `_total` out.
"""

from enum import StrEnum
from typing import NamedTuple

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
TOPIC, PARTITION = ("topic",), ("topic", "partition")
TOTAL = "_total"


class Names(StrEnum):
    """The spellings of Kafka's metrics."""

    STRIMZI = "strimzi"
    REPORTER = "reporter"
    CONFLUENT = "confluent"


class Family(NamedTuple):
    """One metric."""

    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...] = ()
    is_rate: bool = False
    """Whether its bean in Kafka ends in "PerSec"."""

    def spelled(self, names: Names) -> str:
        """Return the name in another spelling."""
        if not self.is_rate or names is Names.STRIMZI:
            return self.name
        stem = self.name.removesuffix(TOTAL)
        return f"{stem}persec{TOTAL if names is Names.REPORTER else ''}"


def _counter(name: str, meaning: str, *labels: str, rate: bool = False) -> Family:
    return Family(f"{name}{TOTAL}", COUNTER, meaning, labels, is_rate=rate)


def _gauge(name: str, meaning: str, *labels: str) -> Family:
    return Family(name, GAUGE, meaning, labels)


def _traffic(name: str, meaning: str, *labels: str) -> Family:
    return _counter(f"kafka_server_brokertopicmetrics_{name}", meaning, *labels, rate=True)


def _replicas(name: str, meaning: str) -> Family:
    return _gauge(f"kafka_server_replicamanager_{name}", meaning)


def _led(name: str, meaning: str) -> Family:
    return _gauge(f"kafka_cluster_partition_{name}", meaning, *PARTITION)


def _log(name: str, meaning: str) -> Family:
    return _gauge(f"kafka_log_log_{name}", meaning, *PARTITION)


def _controller(name: str, meaning: str) -> Family:
    return _gauge(f"kafka_controller_kafkacontroller_{name}", meaning)


def _raft(name: str, meaning: str, *labels: str) -> Family:
    return _gauge(f"kafka_server_raftmetrics_{name}", meaning, *labels)


def _channel(name: str, meaning: str) -> Family:
    return _counter(f"kafka_server_raftchannelmetrics_{name}", meaning)


def _groups(name: str, meaning: str) -> Family:
    return _gauge(f"kafka_coordinator_group_groupmetadatamanager_{name}", meaning)


# What goes through topics; without a label for the whole broker.
MESSAGES_IN = _traffic("messagesin", "Records that producers sent, by batch header.", *TOPIC)
BYTES_IN = _traffic("bytesin", "Bytes of batches that were appended by leaders here.", *TOPIC)
BYTES_OUT = _traffic("bytesout", "Bytes of batches that consumers fetched.", *TOPIC)
PRODUCES = _traffic("totalproducerequests", "Batches in Produce requests.", *TOPIC)
FAILED_PRODUCES = _traffic("failedproducerequests", "Batches that were refused.", *TOPIC)
FETCHES = _traffic("totalfetchrequests", "Partitions in responses to consumers.", *TOPIC)
FAILED_FETCHES = _traffic("failedfetchrequests", "Partitions with an error in them.", *TOPIC)
REPLICATION_IN = _traffic("replicationbytesin", "Bytes that followers here fetched.")
REPLICATION_OUT = _traffic("replicationbytesout", "Bytes that other brokers fetched from here.")
BYTES_REJECTED = _traffic("bytesrejected", "Bytes of batches that were refused.")

LEADERS = _replicas("leadercount", "Partitions that this broker leads.")
REPLICAS = _replicas("partitioncount", "Replicas on this broker.")
OFFLINE_REPLICAS = _replicas("offlinereplicacount", "Replicas here that could not be opened.")
REASSIGNING = _replicas("reassigningpartitions", "Partitions led here that are being moved.")
UNDER_REPLICATED = _replicas("underreplicatedpartitions", "Led here, with replicas out of sync.")
UNDER_MIN_ISR = _replicas(
    "underminisrpartitioncount", "Led here, with fewer in-sync replicas than acks=all needs."
)
AT_MIN_ISR = _replicas(
    "atminisrpartitioncount", "Led here, with exactly as many in-sync replicas as acks=all needs."
)
ISR_SHRINKS = _counter(
    "kafka_server_replicamanager_isrshrinks", "Replicas fell out of an ISR.", rate=True
)
ISR_EXPANDS = _counter(
    "kafka_server_replicamanager_isrexpands", "Replicas joined an ISR.", rate=True
)
FAILED_ISR_UPDATES = _counter(
    "kafka_server_replicamanager_failedisrupdates",
    "ISR changes that the controller refused.",
    rate=True,
)
MAX_LAG = _gauge(
    "kafka_server_replicafetchermanager_maxlag",
    "Records that the replica here that is furthest behind its leader lacks.",
    "clientId",
)

REPLICAS_COUNT = _led("replicascount", "Replicas of a partition that is led here.")
IN_SYNC_COUNT = _led("insyncreplicascount", "Those that are in sync.")
IS_UNDER_REPLICATED = _led("underreplicated", "1 if a replica is out of sync.")
IS_UNDER_MIN_ISR = _led("underminisr", "1 if acks=all is refused.")
IS_AT_MIN_ISR = _led("atminisr", "1 if acks=all is refused after one more loss.")
STABLE_LAG = _led(
    "laststableoffsetlag", "Records between the last stable offset and the high watermark."
)
LOG_SIZE = _log("size", "Bytes of the replica here.")
LOG_SEGMENTS = _log("numlogsegments", "Its segments.")
LOG_START = _log("logstartoffset", "Its first offset.")
LOG_END = _log("logendoffset", "The offset of its next record.")
REPLICA_LAG = _gauge(
    "barnabas_replica_lag_seconds",
    "Since when the slowest follower of a partition led here is behind; only where it is.",
    *PARTITION,
)
OPEN_TRANSACTION = _gauge(
    "barnabas_oldest_open_transaction_seconds",
    "Age of the oldest open transaction of a partition; only where there is one.",
    *PARTITION,
)

FLUSH_TIME = _gauge(
    "kafka_log_logflushstats_logflushrateandtimems",
    "How long an fsync took, in milliseconds, in the last minutes.",
    "quantile",
)
FLUSH_COUNT = Family(
    "kafka_log_logflushstats_logflushrateandtimems_count", COUNTER, "Fsyncs of logs."
)
OFFLINE_DIRECTORIES = _gauge(
    "kafka_log_logmanager_offlinelogdirectorycount", "1 while the disk refuses appends."
)

ACTIVE_CONTROLLER = _controller("activecontrollercount", "1 on the active controller.")
OFFLINE_PARTITIONS = _controller("offlinepartitionscount", "Partitions without a leader.")
GLOBAL_TOPICS = _controller("globaltopiccount", "Topics of the cluster.")
GLOBAL_PARTITIONS = _controller("globalpartitioncount", "Partitions of the cluster.")
ACTIVE_BROKERS = _controller("activebrokercount", "Brokers that are not fenced.")
FENCED_BROKERS = _controller("fencedbrokercount", "Brokers that are fenced.")
IMBALANCE = _controller(
    "preferredreplicaimbalancecount", "Partitions that another than the preferred replica leads."
)
APPLIED_LAG = _controller(
    "lastappliedrecordlagms", "Age of the first metadata record that this broker has not applied."
)
UNCLEAN_ELECTIONS = _counter(
    "kafka_controller_controllerstats_uncleanleaderelections",
    "Leaders that were elected though they lacked records, while this was the controller.",
    rate=True,
)

RAFT_LEADER = _raft("current_leader", "The leader of the metadata quorum; -1 if unknown.")
RAFT_VOTE = _raft("current_vote", "The voter that this node voted for; -1 for none.")
RAFT_EPOCH = _raft("current_epoch", "The epoch of the quorum.")
RAFT_HIGH_WATERMARK = _raft("high_watermark", "The committed part of the metadata log.")
RAFT_END = _raft("log_end_offset", "The end of the metadata log here.")
RAFT_STATE = _raft("current_state", "1 for the role of this node.", "current_state")
RAFT_APPENDS = _raft("append_records_rate", "Records per second that the leader appended.")
RAFT_FETCHES = _raft("fetch_records_rate", "Records per second that this node fetched.")
RAFT_LATENCY = _raft("commit_latency_avg", "Milliseconds from an append to its commit.")
CHANNEL_IN = _channel("incoming_byte", "Bytes that this node read from the quorum's leader.")
CHANNEL_OUT = _channel("outgoing_byte", "Bytes that it sent to other voters.")
CHANNEL_REQUESTS = _channel("request", "Requests that it sent.")
CHANNEL_RESPONSES = _channel("response", "Responses that it got.")

REQUEST_TIME = _gauge(
    "kafka_network_requestmetrics_totaltimems",
    "How long requests took in the last minutes, in milliseconds, without waits they asked for.",
    "request",
    "quantile",
)
REQUESTS = _counter(
    "kafka_network_requestmetrics_requests", "Requests.", "request", "version", rate=True
)
ERRORS = _counter(
    "kafka_network_requestmetrics_errors",
    "Responses by their first error; other errors in them are not counted.",
    "request",
    "error",
    rate=True,
)
REQUEST_SECONDS = Family(
    "barnabas_request_seconds",
    HISTOGRAM,
    "How long requests took, without waits that they asked for.",
    ("request",),
)
HANDLER_IDLE = _gauge(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "Share of time in which the event loop was idle, 0 to 1.",
)
NETWORK_IDLE = _gauge(
    "kafka_network_socketserver_networkprocessoravgidle_percent", "The same: there is one loop."
)
CONNECTIONS = _gauge(
    "kafka_server_socket_server_metrics_connection_count",
    "Open connections.",
    "listener",
    "networkProcessor",
)
SOFTWARE = _gauge(
    "kafka_server_socket_server_metrics_connections_software",
    "Open connections by the software of the client.",
    "clientSoftwareName",
    "clientSoftwareVersion",
)
PURGATORY = _gauge(
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    "Requests whose response is pending.",
    "delayedOperation",
)
FETCH_SESSIONS = _gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchsessions", "Incremental fetch sessions."
)
BROKER_STATE = _gauge(
    "kafka_server_kafkaserver_brokerstate",
    "1 starting, 2 fenced or catching up, 3 running, 6 leaving, 7 stopping.",
)
DISK_READ = _gauge("kafka_server_kafkaserver_linux_disk_read_bytes", "Bytes read from disks.")
DISK_WRITE = _gauge("kafka_server_kafkaserver_linux_disk_write_bytes", "Bytes written to disks.")
CPU_SECONDS = _counter("process_cpu_seconds", "Processor time of the process.")
RESIDENT = _gauge("process_resident_memory_bytes", "Memory of the process.")
OPEN_FILES = _gauge("process_open_fds", "Open files and connections of the process.")
FILES_MAX = _gauge("process_max_fds", "The limit of open files.")

GROUPS = _groups("numgroups", "Groups that this broker coordinates.")
GROUPS_STABLE = _groups("numgroupsstable", "Those with an assignment.")
GROUPS_PREPARING = _groups("numgroupspreparingrebalance", "Those that wait for members to join.")
GROUPS_COMPLETING = _groups("numgroupscompletingrebalance", "Those whose assignment is made.")
GROUPS_EMPTY = _groups("numgroupsempty", "Those without members.")
GROUPS_DEAD = _groups("numgroupsdead", "Those that are about to be removed.")
REBALANCES = _counter("kafka_coordinator_group_rebalances", "New generations of groups.")
OFFSET_COMMITS = _counter("kafka_coordinator_group_offsetcommits", "Offsets in commits.")
PRODUCE_THROTTLE = _gauge(
    "kafka_server_produce_throttle_time", "Average pause of a request in ms.", "client_id"
)
PRODUCE_RATE = _gauge(
    "kafka_server_produce_byte_rate", "Bytes per second of Produce requests.", "client_id"
)
FETCH_THROTTLE = _gauge(
    "kafka_server_fetch_throttle_time", "Average pause of a request in ms.", "client_id"
)
FETCH_RATE = _gauge(
    "kafka_server_fetch_byte_rate", "Bytes per second of Fetch responses.", "client_id"
)

SYNC_SECONDS = Family("barnabas_sync_seconds", HISTOGRAM, "How long fsyncs of logs took.")
SYNC_APPENDS = Family("barnabas_sync_appends", HISTOGRAM, "How many appends an fsync was for.")
LOOP_STALLS = _counter("barnabas_loop_stalls", "Events of the event loop of over 100 ms.")
LOOP_STALL_MAX = _gauge(
    "barnabas_loop_stall_seconds_max", "The longest event of the last one to two minutes."
)
DISK_FREE = _gauge("barnabas_disk_free_bytes", "Free space of the disk with the data.")
DISK_TOTAL = _gauge("barnabas_disk_total_bytes", "Size of that disk.")
STORAGE_ERRORS = _counter("barnabas_storage_errors", "Appends that the disk refused.")
DAMAGED = _gauge("barnabas_damaged_partitions", "Replicas here with damaged or lost records.")
SCRUBBED = _counter("barnabas_scrubbed_bytes", "Bytes that were read to look for damage.")
CONNECTIONS_LIMIT = _gauge(
    "barnabas_connections_limit", "How many connections are accepted, by settings or open files."
)
CONNECTIONS_REFUSED = _counter("barnabas_connections_refused", "Refused connections.", "reason")
BUILD_INFO = _gauge("barnabas_build_info", "Always 1.", "version", "node_id")

FAMILIES: tuple[Family, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Family)
)
"""All metrics, in the order above."""
