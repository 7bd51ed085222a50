"""Tests how pages of metrics become rates and quantiles of brokers."""

import pytest

from barnabas.monitor.cluster_answers import Scrape
from barnabas.monitor.metrics_page import parse_page
from barnabas.monitor.scrape_figures import USED, FigureReader, quantile
from barnabas.monitor.scraping_brokers import broker_of, metrics_address
from barnabas.wire.wire_failures import LinkError

PAGE = """\
# HELP kafka_server_brokertopicmetrics_bytesin_total Bytes.
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 700
kafka_server_brokertopicmetrics_bytesin_total %(bytes)d
kafka_server_brokertopicmetrics_messagesin_total %(records)d
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.75
kafka_server_socket_server_metrics_connection_count{listener="CLIENTS",networkProcessor="0"} 7
kafka_server_socket_server_metrics_connection_count{listener="SECURE",networkProcessor="1"} 3
barnabas_request_seconds_bucket{request="Produce",le="0.001"} %(fast)d
barnabas_request_seconds_bucket{request="Produce",le="0.01"} %(all)d
barnabas_request_seconds_bucket{request="Produce",le="+Inf"} %(all)d
barnabas_build_info{version="0.2.0"} 1
unrelated{a="b"} 1
"""


def page(records: int, size: int, fast: int, total: int) -> Scrape:
    text = PAGE % {"records": records, "bytes": size, "fast": fast, "all": total}
    return Scrape(address="h:1", samples=parse_page(text, USED))


def test_rates_come_from_two_scrapes() -> None:
    reader = FigureReader()
    reader.add(0, {1: page(100, 1000, 0, 0)})
    assert reader.figures[1].bytes_in_per_s == 0.0 or reader.figures[1].bytes_in_per_s is None
    reader.add(10_000, {1: page(300, 21_000, 98, 100)})
    found = reader.figures[1]
    assert found.records_per_s == 20.0
    assert found.bytes_in_per_s == 2000.0, "the total, not the series of a topic"
    assert found.bytes_out_per_s is None
    assert found.loop_busy_ratio == 0.25
    assert found.connections == 10
    assert found.version == "0.2.0"
    assert found.produce_p99_s == pytest.approx(0.001 + 0.009 / 2)
    assert found.fetch_p99_s is None
    assert reader.total("bytes_in_per_s") == 2000.0
    assert reader.produce_p99_s == found.produce_p99_s


def test_a_restarted_broker_does_not_count_backwards() -> None:
    reader = FigureReader()
    reader.add(0, {1: page(1000, 1_000_000, 500, 500)})
    reader.add(10_000, {1: page(10, 5000, 10, 10)})
    assert reader.figures[1].bytes_in_per_s == 500.0
    assert reader.figures[1].produce_p99_s == pytest.approx(0.00099)


def test_quantile_of_nothing_is_unknown() -> None:
    assert quantile([], 0.99) is None
    assert quantile([{0.1: 0.0, float("inf"): 0.0}], 0.99) is None
    assert quantile([{0.1: 0.0, float("inf"): 4.0}], 0.99) == 0.1


def test_lines_that_cannot_be_read_are_left_out() -> None:
    text = 'm{a="1"} x\nm{a="2"}\nm{a="q\\"uo\\\\te\\n"} 3 1700000000\nm 4\n\n# m 5\nmm 6'
    assert parse_page(text, {"m"}) == {"m": [({"a": 'q"uo\\te\n'}, 3.0), ({}, 4.0)]}


@pytest.mark.parametrize(
    ("text", "label", "hosts", "expected"),
    [
        ("7=h:9600", "", {1: "h"}, 7),
        ("h:9600", '{node_id="4"}', {1: "h", 2: "h"}, 4),
        ("h2:9600", "", {1: "h1", 2: "h2"}, 2),
        ("h:9600", "", {1: "h", 2: "h"}, None),
        ("elsewhere:9600", "", {3: "h"}, 3),
    ],
)
def test_which_broker_serves_an_address(
    text: str, label: str, hosts: dict[int, str], expected: int | None
) -> None:
    samples = parse_page(f"barnabas_build_info{label} 1\n", USED)
    found = broker_of(metrics_address(text), Scrape(address=text, samples=samples), hosts)
    assert found == expected


def test_a_wrong_address_is_refused() -> None:
    with pytest.raises(LinkError, match=r"\[ID=\]HOST:PORT"):
        metrics_address("one=h:9600")
