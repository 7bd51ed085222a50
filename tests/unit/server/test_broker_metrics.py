"""Tests the metrics of a broker: what real clients did is what a scrape finds."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.server.metrics.metric_families import COUNTER, FAMILIES, HISTOGRAM, Names
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.http_client import Samples, ask, scrape

TOPIC, EMPTY_TOPIC = "orders", "gpu.metrics"
TRAFFIC = "kafka_server_brokertopicmetrics_"
RECORDS = 300


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings: dict[str, object] = {
        "observability.http_listen": "127.0.0.1:0",
        "broker.default_partitions": 2,
        "groups.offsets_partitions": 3,
        "groups.initial_rebalance_delay": "1ms",
    }
    with Broker(settings=settings) as running:
        yield running


def scraped(broker: Broker, path: str = "/metrics") -> Samples:
    return scrape(broker.http_address, path)


def produce(broker: Broker, topic: str = TOPIC, records: int = RECORDS) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "till"})
    for number in range(records):
        producer.produce(topic, b"v" * 100, partition=number % 2)
    producer.flush(30)
    producer.poll(0)


@pytest.fixture(scope="module")
def consumed(broker: Broker) -> Iterator[Consumer]:
    """A consumer of all records, whose offsets are committed."""
    produce(broker)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "billing",
            "client.id": "till",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    left = RECORDS
    while left:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        left -= 1
    consumer.commit(asynchronous=False)
    yield consumer
    consumer.close()


def test_every_metric_is_there_with_its_type(broker: Broker, consumed: Consumer) -> None:
    found = scraped(broker)
    for family in FAMILIES:
        name = family.name
        if family.kind == COUNTER:
            name = name.removesuffix("_total")
            assert family.name.endswith(("_total", "_count"))
        assert name in found.types, family.name
        assert found.types[name] == family.kind, family.name
        assert f"# HELP {family.name} {family.meaning}\n" in found.text


def test_records_and_bytes_are_counted_by_topic_and_in_all(
    broker: Broker, consumed: Consumer
) -> None:
    found = scraped(broker)
    assert found.value(f"{TRAFFIC}messagesin_total", topic=TOPIC) == RECORDS
    size = found.value(f"{TRAFFIC}bytesin_total", topic=TOPIC)
    assert size > RECORDS * 100
    assert found.value(f"{TRAFFIC}bytesout_total", topic=TOPIC) == size
    assert sum(found.get("kafka_log_log_size", topic=TOPIC, partition=str(n)) for n in (0, 1)) == (
        size
    )
    for name in ("messagesin", "bytesin", "totalproducerequests", "totalfetchrequests"):
        series = found.by_name[f"{TRAFFIC}{name}_total"]
        by_topic = sum(value for labels, value in series.items() if labels)
        assert found.value(f"{TRAFFIC}{name}_total") == by_topic > 0


def test_the_numbers_of_a_partition(broker: Broker, consumed: Consumer) -> None:
    found = scraped(broker)
    place = {"topic": TOPIC, "partition": "1"}
    for name, value in (
        ("kafka_log_log_logstartoffset", 0),
        ("kafka_log_log_logendoffset", RECORDS / 2),
        ("kafka_log_log_numlogsegments", 1),
        ("kafka_cluster_partition_replicascount", 1),
        ("kafka_cluster_partition_insyncreplicascount", 1),
        ("kafka_cluster_partition_underreplicated", 0),
        ("kafka_cluster_partition_underminisr", 0),
        ("kafka_cluster_partition_laststableoffsetlag", 0),
    ):
        assert found.value(name, **place) == value, name
    replicas = found.value("kafka_server_replicamanager_partitioncount")
    assert replicas == len(found.series("kafka_log_log_size"))
    assert replicas == found.value("kafka_controller_kafkacontroller_globalpartitioncount")


def test_requests_are_counted_by_version_and_error(broker: Broker, consumed: Consumer) -> None:
    found = scraped(broker)
    requests = found.series("kafka_network_requestmetrics_requests_total")
    assert {"Produce", "FetchConsumer", "JoinGroup"} <= {each["request"] for each in requests}
    error = {"request": "JoinGroup", "error": "MEMBER_ID_REQUIRED"}
    assert found.value("kafka_network_requestmetrics_errors_total", **error) >= 1
    produced = found.value("barnabas_request_seconds_count", request="Produce")
    by_version = found.by_name["kafka_network_requestmetrics_requests_total"].items()
    assert produced == sum(n for labels, n in by_version if ("request", "Produce") in labels)


def test_histograms_add_up(broker: Broker, consumed: Consumer) -> None:
    found = scraped(broker)
    for family in (each for each in FAMILIES if each.kind == HISTOGRAM):
        for labels, count in found.by_name[f"{family.name}_count"].items():
            bucket = f"{family.name}_bucket"
            rows = [dict(each) for each in found.by_name[bucket] if labels <= each]
            bounds = sorted(float(each["le"]) for each in rows)
            values = [
                found.by_name[bucket][labels | {("le", le)}]
                for le in sorted((each["le"] for each in rows), key=float)
            ]
            assert bounds[-1] == float("inf")
            assert all(low <= high for low, high in pairwise(values))
            assert values[-1] == count
    assert found.value("barnabas_sync_seconds_count") > 0
    assert found.value("barnabas_sync_appends_sum") >= found.value("barnabas_sync_appends_count")
    # The parser gives each counter the ending that this one has not got in Kafka.
    assert found.value("kafka_log_logflushstats_logflushrateandtimems_count_total") > 0


def test_groups_and_commits(broker: Broker, consumed: Consumer) -> None:
    found = scraped(broker)
    groups = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    assert (found.value(groups), found.value(f"{groups}stable")) == (1, 1)
    assert found.value("kafka_coordinator_group_offsetcommits_total") == 2
    assert found.value("kafka_coordinator_group_rebalances_total") >= 1


def test_a_fetch_that_waits_is_in_the_purgatory(broker: Broker, consumed: Consumer) -> None:
    consumed.poll(0)

    def waiting() -> float:
        name = "kafka_server_delayedoperationpurgatory_purgatorysize"
        return scraped(broker).value(name, delayedOperation="Fetch")

    assert eventually(lambda: waiting() >= 1)


def test_connections_and_software(broker: Broker, consumed: Consumer) -> None:
    found = scraped(broker)
    connections = "kafka_server_socket_server_metrics_connection_count"
    assert found.value(connections, listener="PLAINTEXT", networkProcessor="0") >= 1
    assert found.value(connections, listener="HTTP", networkProcessor="0") == 1
    software = found.series("kafka_server_socket_server_metrics_connections_software")
    assert any(each["clientSoftwareName"].startswith("confluent") for each in software)


def test_software_is_forgotten_with_its_connection(broker: Broker) -> None:
    name = "kafka_server_socket_server_metrics_connections_software"

    def connections() -> float:
        return sum(scraped(broker).by_name.get(name, {}).values())

    before = connections()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.list_topics(timeout=30)
    assert eventually(lambda: connections() > before)
    del producer
    assert eventually(lambda: connections() == before)


def test_refused_batches(broker: Broker) -> None:
    before = scraped(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 5_000_000})
    failures: list[object] = []
    producer.produce(
        TOPIC, b"x" * 2_000_000, partition=0, on_delivery=lambda error, _: failures.append(error)
    )
    producer.flush(30)
    assert failures[0] is not None
    after = scraped(broker)

    def grown(name: str, **labels: str) -> float:
        return after.get(name, **labels) - before.get(name, **labels)

    assert grown(f"{TRAFFIC}failedproducerequests_total", topic=TOPIC) == 1
    assert grown(f"{TRAFFIC}totalproducerequests_total", topic=TOPIC) == 1
    assert grown(f"{TRAFFIC}bytesrejected_total") > 2_000_000
    assert grown(f"{TRAFFIC}messagesin_total", topic=TOPIC) == 0
    error = {"request": "Produce", "error": "MESSAGE_TOO_LARGE"}
    assert grown("kafka_network_requestmetrics_errors_total", **error) == 1


def test_a_fetch_from_nowhere_fails(broker: Broker, consumed: Consumer) -> None:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "x", "auto.offset.reset": "error"}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 1_000_000)])
    message = consumer.poll(30)
    assert message is not None
    assert message.error() is not None
    consumer.close()
    found = scraped(broker)
    assert found.value(f"{TRAFFIC}failedfetchrequests_total", topic=TOPIC) >= 1


def test_totals_never_go_back_when_a_topic_is_deleted(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient

    produce(broker, EMPTY_TOPIC, 10)
    before = scraped(broker).value(f"{TRAFFIC}messagesin_total")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([EMPTY_TOPIC])[EMPTY_TOPIC].result(30)

    def is_gone() -> bool:
        named = scraped(broker).series(f"{TRAFFIC}messagesin_total")
        return EMPTY_TOPIC not in {each.get("topic") for each in named}

    assert eventually(is_gone)
    assert scraped(broker).value(f"{TRAFFIC}messagesin_total") >= before


def test_kafkas_names_in_other_spellings(broker: Broker, consumed: Consumer) -> None:
    name = "kafka_server_brokertopicmetrics_bytesin"
    for names, spelled in (
        (Names.STRIMZI, f"{name}_total"),
        (Names.REPORTER, f"{name}persec_total"),
        (Names.CONFLUENT, f"{name}persec"),
    ):
        text = ask(broker.http_address, f"/metrics?names={names}").text
        assert f'\n{spelled}{{topic="{TOPIC}"}} ' in text
        assert f"\n# TYPE {spelled} counter\n" in text
        assert "\nbarnabas_build_info{" in text


def test_rates_of_a_client_id(broker: Broker, consumed: Consumer) -> None:
    assert broker._process is not None
    server = broker._process.server
    # What the timer does every ten seconds.
    server.loop.call_soon_threadsafe(server._turn)  # type: ignore[attr-defined]

    def rate() -> float:
        return scraped(broker).get("kafka_server_produce_byte_rate", client_id="till")

    assert eventually(lambda: rate() > 0)
    idle = scraped(broker).value(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
    )
    assert 0 < idle < 1


def test_very_many_partitions_have_series_on_a_page_of_their_own() -> None:
    settings: dict[str, object] = {
        "observability.http_listen": "127.0.0.1:0",
        "observability.partition_series_max": 10,
        "broker.default_partitions": 20,
    }
    with Broker(settings=settings) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        with RawClient((host, int(port))) as client:
            topics = [MetadataRequestTopic(name=TOPIC)]
            client.ask(MetadataRequest(topics=topics), 12, MetadataResponse)
        produce(broker)
        found = scraped(broker)
        assert found.series("kafka_log_log_logendoffset") == [{"topic": TOPIC}]
        assert found.value("kafka_log_log_logendoffset", topic=TOPIC) == RECORDS
        assert found.value("kafka_cluster_partition_replicascount", topic=TOPIC) == 20
        each = scraped(broker, "/metrics/partitions")
        assert len(each.series("kafka_log_log_logendoffset")) == 20
        place = {"topic": TOPIC, "partition": "1"}
        assert each.value("kafka_log_log_logendoffset", **place) == RECORDS / 2
