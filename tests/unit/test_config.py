"""Tests settings as operators write them, valid and invalid."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.config import example, load, page
from barnabas.config.keys import BY_PATH, SECTIONS, TABLE
from barnabas.model.errors import ConfigError
from barnabas.model.settings import DAY_MS, GIB, KIB, MIB, Settings, TopicSettings

ROOT = Path(__file__).parents[2]


class Folder:
    """A folder with one configuration file."""

    def __init__(self, path: Path) -> None:
        self.file = path / "barnabas.yaml"

    def load(
        self,
        text: str,
        environment: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
    ) -> Settings:
        self.file.write_text(text)
        return load(self.file, environment or {}, flags or {})

    def refusal(self, text: str) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(text)
        return str(caught.value).replace(str(self.file), "FILE")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def refusal(environment: Mapping[str, str], flags: Mapping[str, object]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(None, environment, flags)
    return str(caught.value)


# --- accepted settings ---


def test_nothing_given_is_the_defaults(folder: Folder) -> None:
    assert load(None, {}, {}) == Settings()
    assert folder.load("") == Settings()
    assert folder.load("# nothing yet\n") == Settings()
    assert folder.load("storage:\ntopics:\n") == Settings()


def test_the_file_of_the_design(folder: Folder) -> None:
    settings = folder.load(
        """
broker:
  id: 1
  host: "0.0.0.0"
  port: 9092
  data_dir: "/data/message-queue"
cluster:
  bootstrap_servers:
    - "broker-1:9092"
    - "broker-2:9092"
storage:
  segment_size: "1GB"
  segment_time: "24h"
  retention_time: "7d"
  retention_size: "100GB"
  fsync_interval: "1s"
performance:
  max_connections: 10000
  socket_send_buffer: "100KB"
  socket_receive_buffer: "100KB"
  max_message_size: "1MB"
  batch_size: "16KB"
  linger_time: "5ms"
replication:
  default_replication_factor: 3
  min_insync_replicas: 2
  replica_lag_time_max: "10s"
  replica_lag_records_max: 1000
topics:
  gpu-telemetry:
    partitions: 12
    replication_factor: 3
    retention_time: "30d"
    retention_size: "500GB"
    compression_type: "snappy"
    cleanup_policy: "delete"
    segment_size: "1GB"
"""
    )
    assert settings.broker.host == "0.0.0.0"
    assert settings.cluster.bootstrap_servers == ("broker-1:9092", "broker-2:9092")
    assert settings.storage.segment_ms == DAY_MS
    assert settings.storage.retention_bytes == 100 * GIB
    assert settings.performance.socket_send_buffer_bytes == 100 * KIB
    assert settings.performance.max_message_bytes == MIB
    assert settings.performance.linger_ms == 5
    assert settings.replication.replica_lag_max_ms == 10_000
    assert settings.replication.replica_lag_max_records == 1000
    assert settings.topics == (
        TopicSettings(
            name="gpu-telemetry",
            partitions=12,
            replication_factor=3,
            config={
                "retention.ms": str(30 * DAY_MS),
                "retention.bytes": str(500 * GIB),
                "compression.type": "snappy",
                "cleanup.policy": "delete",
                "segment.bytes": str(GIB),
            },
        ),
    )


def test_later_sources_win(folder: Folder) -> None:
    text = "storage:\n  segment_size: 1MB\n  segment_time: 1h\n  retention_time: 1d\n"
    environment = {
        "BARNABAS_STORAGE_SEGMENT_SIZE": "2MB",
        "BARNABAS_STORAGE_SEGMENT_TIME": "2h",
        "HOME": "/",
    }
    flags = {"storage.segment_size": "3MB", "broker.port": None}
    storage = folder.load(text, environment, flags).storage
    assert storage.segment_bytes == 3 * MIB
    assert storage.segment_ms == 2 * 3_600_000
    assert storage.retention_ms == DAY_MS


def test_flags_may_be_typed() -> None:
    flags = {
        "broker.port": 0,
        "broker.auto_create_topics": False,
        "broker.data_dir": Path("somewhere"),
        "cluster.bootstrap_servers": ["a:1", "b:2"],
        "storage.min_cleanable_dirty_ratio": 0.25,
    }
    settings = load(None, {}, flags)
    assert settings.broker.port == 0
    assert settings.broker.auto_create_topics is False
    assert settings.broker.data_dir == "somewhere"
    assert settings.cluster.bootstrap_servers == ("a:1", "b:2")
    assert settings.storage.min_cleanable_dirty_ratio == 0.25


def test_environment_lists_and_empty_texts() -> None:
    environment = {
        "BARNABAS_CLUSTER_BOOTSTRAP_SERVERS": "a:1, b:2",
        "BARNABAS_BROKER_RACK": "",
        "BARNABAS_STORAGE_RETENTION_SIZE": "unlimited",
        "BARNABAS_STORAGE_VERIFY_ON_START": "yes",
    }
    settings = load(None, environment, {})
    assert settings.cluster.bootstrap_servers == ("a:1", "b:2")
    assert settings.broker.rack is None
    assert settings.storage.retention_bytes == -1
    assert settings.storage.verify_on_start is True


def test_topics_take_kafkas_names_lists_and_nothing(folder: Folder) -> None:
    settings = folder.load(
        """
topics:
  plain:
  empty: {}
  kafka.style:
    retention.ms: 5
    cleanup_policy: [compact, delete]
    unclean_leader_election: yes
    retention_size: unlimited
"""
    )
    assert [topic.name for topic in settings.topics] == ["plain", "empty", "kafka.style"]
    assert settings.topics[0] == TopicSettings(name="plain")
    assert settings.topics[2].config == {
        "retention.ms": "5",
        "cleanup.policy": "compact,delete",
        "unclean.leader.election.enable": "true",
        "retention.bytes": "-1",
    }


# --- refused settings, and the messages ---


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "storage:\n  segment_size: 1XB\n",
            "FILE, line 2: storage.segment_size is '1XB'; write a size such as 512MB.",
        ),
        (
            "storage:\n  segment_size: 12\n",
            "FILE, line 2: storage.segment_size is '12'; write 1KB or more.",
        ),
        (
            "storage:\n  segment_size: 5GB\n",
            "FILE, line 2: storage.segment_size is '5GB'; write 2147483647B or less.",
        ),
        (
            "storage:\n\n  retention_time: soon\n",
            "FILE, line 3: storage.retention_time is 'soon'; "
            "write a time such as 30s or 7d, or unlimited.",
        ),
        (
            "storage:\n  flush: never\n",
            """FILE, line 2: storage.flush is 'never'; write one of "ack", "interval".""",
        ),
        (
            "storage:\n  segment_sise: 1GB\n",
            "FILE, line 2: there is no key storage.segment_sise; did you mean segment_size?",
        ),
        (
            "cluster:\n  zzz: 1\n",
            "FILE, line 2: there is no key cluster.zzz; "
            "the keys of cluster are cluster_id, bootstrap_servers, "
            "roles, host, port, advertised_host, tls_certificate, tls_key, tls_authorities, "
            "tls_peer_names, allow_plaintext_peers, voters, election_timeout, fetch_timeout, "
            "broker_session_timeout, broker_heartbeat_interval, snapshot_after_records, "
            "leader_imbalance_check_interval.",
        ),
        (
            "broker:\n  port: 9092\nstorag:\n  flush: ack\n",
            "FILE, line 3: there is no section 'storag'; did you mean storage?",
        ),
        ("broker:\n  port: 70000\n", "FILE, line 2: broker.port is '70000'; write 65535 or less."),
        (
            "broker:\n  port: [1]\n",
            "FILE, line 2: broker.port is ['1']; write a whole number such as 4.",
        ),
        (
            "broker:\n  port:\n",
            "FILE, line 2: broker.port is empty; write a whole number such as 4.",
        ),
        ("broker: 9092\n", "FILE, line 1: broker is '9092'; write its keys below it."),
        (
            "broker:\n  port: {a: 1}\n",
            "FILE, line 2: broker.port has keys below it; write a value or a list of values.",
        ),
        (
            "broker:\n  delete_topics: perhaps\n",
            "FILE, line 2: broker.delete_topics is 'perhaps'; write true or false.",
        ),
        (
            "cluster:\n  bootstrap_servers: [a]\n",
            "FILE, line 2: cluster.bootstrap_servers is ['a']; "
            "write a list of host:port such as [broker-1:9092, broker-2:9092].",
        ),
        (
            "broker:\n  port: 1\n  host: a\n  port: 2\n",
            "FILE, line 4: broker.port is already set on line 2; remove one of the two.",
        ),
        (
            "- broker\n",
            "FILE, line 1: write sections such as `broker:` with keys below them.",
        ),
        ("[1]: 2\n", "FILE, line 1: a key must be a plain word."),
        (
            "broker:\n\tport: 1\n",
            "FILE, line 2: invalid YAML: found character '\\t' that cannot start any token.",
        ),
        (
            "performance:\n  max_message_size: 200MB\n",
            "performance.max_message_size (200MB) does not fit into "
            "performance.max_request_size (100MB); raise the second.",
        ),
        (
            "topics:\n  a/b:\n    partitions: 1\n",
            "FILE, line 2: a topic's name is made of letters, digits, '.', '_' and '-'; "
            "'a/b' is not.",
        ),
        (
            "topics:\n  a:\n    partitons: 1\n",
            "FILE, line 3: there is no key 'partitons' for a topic; did you mean partitions?",
        ),
        (
            "topics:\n  a:\n    partitions: 0\n",
            "FILE, line 3: topics.a.partitions is '0'; write 1 or more.",
        ),
        (
            "topics:\n  a:\n    retention_time: x\n",
            "FILE, line 3: topics.a.retention_time is 'x'; "
            "write a time such as 30s or 7d, or unlimited.",
        ),
        (
            "topics:\n  a:\n    retention.ms: 7d\n",
            "FILE, line 3: topics.a.retention.ms is '7d'; Invalid value '7d' for retention.ms: "
            "it must be a whole number of at least -1.",
        ),
        (
            "topics:\n  a:\n    retention.ms: 7\n    retention_time: 8\n",
            "FILE, line 4: topics.a.retention_time is '8'; "
            "retention.ms is set twice for this topic; remove one of the two.",
        ),
        (
            "topics:\n  a:\n    min_compaction_lag: 7\n    max.compaction.lag.ms: 6\n",
            "FILE, line 2: topics.a: min.compaction.lag.ms (7) must not be above "
            "max.compaction.lag.ms (6).",
        ),
        ("topics: 3\n", "FILE, line 1: topics is '3'; write its keys below it."),
    ],
)
def test_a_wrong_file_is_answered_with_the_remedy(folder: Folder, text: str, message: str) -> None:
    assert folder.refusal(text) == message


def test_all_problems_are_reported_at_once(folder: Folder) -> None:
    lines = folder.refusal("broker:\n  port: x\n  hots: a\ntopics:\n  a:\n    flush: x\n")
    assert [line.split(":")[0] for line in lines.splitlines()] == [
        "FILE, line 2",
        "FILE, line 3",
        "FILE, line 6",
    ]


def test_a_missing_file_is_reported_with_how_to_create_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file; `barnabas serve --print-config`"):
        load(tmp_path / "none.yaml", {}, {})
    with pytest.raises(ConfigError, match="it cannot be read: Is a directory"):
        load(tmp_path, {}, {})


def test_a_file_that_is_not_text_is_refused(folder: Folder) -> None:
    folder.file.write_bytes(b"broker:\n  host: \xff\n")
    with pytest.raises(ConfigError, match="byte 16 is not UTF-8"):
        load(folder.file, {}, {})
    assert "invalid YAML" in folder.refusal("broker: \x00\n")


def test_a_wrong_variable_is_refused() -> None:
    assert refusal({"BARNABAS_STORAGE_SEGMENT_SISE": "1"}, {}) == (
        "environment: the variable BARNABAS_STORAGE_SEGMENT_SISE sets nothing; "
        "did you mean BARNABAS_STORAGE_SEGMENT_SIZE?"
    )
    assert refusal({"BARNABAS_ZZZ": "1"}, {}).endswith("sets nothing; unset it.")
    assert refusal({"BARNABAS_BROKER_PORT": "x"}, {}) == (
        "environment variable BARNABAS_BROKER_PORT: broker.port is 'x'; "
        "write a whole number such as 4."
    )
    assert "broker.host is empty; write text." in refusal({"BARNABAS_BROKER_HOST": ""}, {})


def test_a_wrong_flag_is_refused() -> None:
    assert refusal({}, {"broker.prot": 1}) == (
        "flag broker.prot: there is no key broker.prot; did you mean port?"
    )
    assert "there is no section 'port'" in refusal({}, {"port": 1})
    assert "write its keys below it" in refusal({}, {"topics.a.partitions": 1})


def test_a_wrong_value_is_refused_even_where_it_is_overridden(folder: Folder) -> None:
    with pytest.raises(ConfigError, match=r"line 2: broker\.port"):
        folder.load("broker:\n  port: x\n", {}, {"broker.port": 1})


# --- clusters ---

VOTERS = "1@broker-1:9192, 2@broker-2:9192, 3@broker-3:9192"


def test_a_voter_of_a_cluster(folder: Folder) -> None:
    settings = folder.load(
        """
broker:
  id: 2
cluster:
  host: 0.0.0.0
  port: 9192
  voters: [1@broker-1:9192, 2@broker-2:9192, 3@broker-3:9192]
  allow_plaintext_peers: true
  election_timeout: 1500ms
  broker_session_timeout: 6s
replication:
  fetch_size: 1MB
  catch_up_rate: 20MB
"""
    )
    cluster = settings.cluster
    assert cluster.voters == ("1@broker-1:9192", "2@broker-2:9192", "3@broker-3:9192")
    assert cluster.roles == "both"
    assert cluster.election_timeout_ms == 1500
    assert cluster.broker_session_timeout_ms == 6000
    assert settings.replication.fetch_bytes == MIB
    assert settings.replication.catch_up_bytes_per_second == 20 * MIB


@pytest.mark.parametrize(
    "flags",
    [
        {"broker.id": 4, "cluster.roles": "broker", "cluster.voters": VOTERS},
        {
            "broker.id": 1,
            "cluster.host": "broker-1",
            "cluster.voters": VOTERS,
            "cluster.allow_plaintext_peers": True,
        },
        {"broker.id": 1, "cluster.voters": "1@localhost:1"},
        {
            "broker.id": 3,
            "cluster.allow_plaintext_peers": True,
            "cluster.host": "10.0.0.3",
            "cluster.advertised_host": "broker-3",
            "cluster.voters": VOTERS,
        },
        {"cluster.voters": "1@[::1]:9192", "cluster.host": "::1"},
    ],
)
def test_voters_that_agree_with_the_rest(flags: dict[str, object]) -> None:
    assert load(None, {}, flags).cluster.voters


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"cluster.voters": "broker-1:9192"},
            "flag cluster.voters: cluster.voters is 'broker-1:9192'; write a list of id@host:port "
            "such as [1@broker-1:9192, 2@broker-2:9192, 3@broker-3:9192].",
        ),
        (
            {"cluster.voters": "1@localhost:70000"},
            "flag cluster.voters: cluster.voters is '1@localhost:70000'; write a list of "
            "id@host:port such as [1@broker-1:9192, 2@broker-2:9192, 3@broker-3:9192].",
        ),
        (
            {"cluster.voters": "1@localhost:1,01@localhost:2", "cluster.port": 2},
            "cluster.voters names broker 1 more than once; give each voter its own id.",
        ),
        (
            {"broker.id": 9, "cluster.voters": VOTERS},
            "cluster.voters does not name this broker (broker.id is 9); add 9@host:port to it, or "
            'set cluster.roles to "broker".',
        ),
        (
            {"cluster.voters": VOTERS, "cluster.roles": "broker", "cluster.host": "broker-1"},
            'cluster.roles is "broker", but cluster.voters names this broker (broker.id is 1); '
            "remove it from cluster.voters, or remove cluster.roles.",
        ),
        (
            {"cluster.roles": "controller"},
            'cluster.roles is "controller", but cluster.voters is empty: a single broker '
            "has all roles; set cluster.voters, or remove cluster.roles.",
        ),
        (
            {"cluster.voters": VOTERS, "cluster.host": "broker-1", "cluster.port": 9193},
            "cluster.port is 9193, but cluster.voters says that broker 1 listens on "
            "broker-1:9192; use the same port.",
        ),
        (
            {"cluster.voters": VOTERS},
            "cluster.host is '127.0.0.1', but cluster.voters says that broker 1 listens on "
            "broker-1:9192; use the same address, or set cluster.advertised_host to 'broker-1' "
            "if both are the same host.",
        ),
        (
            {"cluster.broker_session_timeout": "3s"},
            "cluster.broker_heartbeat_interval (2s) must be at most half of "
            "cluster.broker_session_timeout (3s), otherwise one late heartbeat fences the "
            "broker; raise the second.",
        ),
        ({"cluster.roles": "observer"}, 'write one of "both", "broker", "controller".'),
    ],
)
def test_clusters_that_cannot_be(flags: dict[str, object], message: str) -> None:
    assert message in refusal({}, flags)


# --- the table, the example and the manual ---


def test_every_setting_has_one_key_and_every_key_a_setting() -> None:
    settings = Settings()
    for section in SECTIONS:
        fields = [key.field for key in TABLE if key.section == section]
        assert sorted(fields) == sorted(getattr(settings, section).__slots__)
    assert len(BY_PATH) == len(TABLE)
    assert set(Settings.__slots__) == {*SECTIONS, "listeners", "topics"}


def test_the_example_is_the_defaults(folder: Folder) -> None:
    assert folder.load(example()) == Settings()
    assert max(map(len, example().splitlines())) <= 100


def test_the_example_sets_every_key_below_a_comment() -> None:
    lines = example().splitlines()
    for key in TABLE:
        index = next(i for i, line in enumerate(lines) if line.startswith(f"  {key.name}: "))
        assert lines[index - 1].startswith("  # ")


def test_the_manual_is_up_to_date() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()
    assert written == page(), "run `python tools/write_configuration_page.py`"
