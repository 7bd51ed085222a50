"""Tests the series of streaming queries, from the records of their topic."""

from prometheus_client.parser import text_string_to_metric_families

from barnabas.client import Producer, Record
from barnabas.exporter.series_text import page
from barnabas.exporter.stream_series import StreamSeries, stream_families
from barnabas.monitor.stream_progress import StreamProgress
from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.metric_names import unknown_names


def row(name: str, **values: int) -> StreamProgress:
    return StreamProgress(
        name=name,
        query_id="q",
        run_id="r",
        state="running",
        since_ms=1,
        updated_ms=2_500,
        batch_ms=values.get("batch_ms"),
        lag=values.get("lag"),
        restarts=values.get("restarts", 0),
    )


def values(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_query_has_a_series_for_each_value_that_is_known() -> None:
    text = page(stream_families([row("silver", batch_ms=250, lag=7, restarts=2)]))
    found = values(text)
    assert found["barnabas_stream_state", "silver", "running"] == 1
    assert found["barnabas_stream_state", "silver", "failed"] == 0
    assert found["barnabas_stream_batch_seconds", "silver"] == 0.25
    assert found["barnabas_stream_lag", "silver"] == 7
    assert found["barnabas_stream_restarts_total", "silver"] == 2
    assert found["barnabas_stream_updated_timestamp_seconds", "silver"] == 2.5
    assert ("barnabas_stream_state_rows", "silver") not in found
    assert {name for name, *_ in found if unknown_names(name)} == set()


def test_without_queries_there_is_no_text() -> None:
    assert page(stream_families([])) == ""


def test_the_topic_is_read_once_it_exists_and_a_tombstone_removes_a_query() -> None:
    with Broker() as broker:
        client = {"bootstrap.servers": broker.bootstrap}
        with Watcher(WatchSettings(properties=client, interval_s=0.2)) as watcher:
            watcher.wait(30.0)
            series = StreamSeries(client, "streams", watcher)
            assert series.text() == ""
            with Producer(broker.bootstrap) as producer:
                for each in (row("silver", lag=1), row("gold"), row("silver", lag=2)):
                    key, value = each.to_record()
                    producer.send_batch("streams", [Record(key=key, value=value)])
                producer.send("streams", None, key="gold")
            eventually(
                lambda: watcher.state is not None and "streams" in watcher.state.topics, 30.0
            )
            series.start()
            place = ("barnabas_stream_lag", "silver")
            eventually(lambda: values(series.text()).get(place) == 2, 30.0)
            eventually(lambda: "gold" not in series.text(), 30.0)
            series.stop()
