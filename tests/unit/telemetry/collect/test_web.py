"""Tests the collector's own pages."""

import json
import socket
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.telemetry.collect import vitals as module
from barnabas.telemetry.collect.collector_web import CLIENTS_MAX, OwnPages, WebError
from barnabas.telemetry.collect.fetching import FetchError, StatusError, get
from barnabas.telemetry.collect.targets import Access
from barnabas.telemetry.collect.vitals import Totals, Vitals
from barnabas.testing.waiting import eventually


@pytest.fixture
def vitals() -> Vitals:
    found = Vitals(interval_s=30)
    found.begun(["http://a/metrics", 'http://b/"quoted"'], 0)
    found.scraped("http://a/metrics", 0.25, 200)
    found.failed('http://b/"quoted"', 10.0)
    found.update(Totals(samples=200, messages=25, refused=3, spool_bytes=4_096))
    return found


@pytest.fixture
def base(vitals: Vitals) -> Iterator[str]:
    with OwnPages("127.0.0.1", 0, vitals) as pages:
        yield f"http://127.0.0.1:{pages.port}"


def page(url: str) -> str:
    return get(url, Access(), timeout_s=20, bytes_max=1 << 20).decode()


def test_metrics_are_prometheus_text(base: str) -> None:
    families = list(text_string_to_metric_families(page(f"{base}/metrics")))
    found = {
        (
            sample.name.removeprefix("barnabas_collector_"),
            sample.labels.get("target", ""),
        ): sample.value
        for family in families
        for sample in family.samples
    }
    assert found["up", "http://a/metrics"] == 1
    assert found["up", 'http://b/"quoted"'] == 0
    assert found["scrape_duration_seconds", "http://a/metrics"] == 0.25
    assert found["scrape_samples", "http://a/metrics"] == 200
    assert found["scrape_failures_total", 'http://b/"quoted"'] == 1
    assert (found["samples_total", ""], found["refused_total", ""]) == (200, 3)
    assert (found["spool_bytes", ""], found["dropped_total", ""]) == (4_096, 0)


def test_health_distinguishes_a_stalled_collector_from_a_waiting_one(
    base: str, vitals: Vitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(page(f"{base}/health")) == {
        "status": "ok", "problems": [], "targets": 2, "up": 1
    }  # fmt: skip
    vitals.failed("http://a/metrics", 10.0)
    vitals.update(Totals(is_waiting=True, dropped=1))
    answer = json.loads(page(f"{base}/health?verbose"))
    assert (answer["status"], len(answer["problems"])) == ("degraded", 3)
    monkeypatch.setattr(module, "STALLED_AFTER_INTERVALS", -1)
    monkeypatch.setattr(module, "STALLED_AFTER_S_MIN", -1)
    with pytest.raises(StatusError) as caught:
        page(f"{base}/health")
    assert caught.value.status == 503


def test_targets_that_are_gone_are_forgotten(base: str, vitals: Vitals) -> None:
    vitals.begun(["http://a/metrics"], 2)
    text = page(f"{base}/metrics")
    assert "quoted" not in text
    assert "rounds_skipped_total 2\n" in text
    assert 'up{target="http://a/metrics"} 1\n' in text


def test_other_paths_and_addresses_are_refused(base: str, vitals: Vitals) -> None:
    with pytest.raises(StatusError, match="404"):
        page(f"{base}/")
    port = int(base.rpartition(":")[2])
    with pytest.raises(WebError, match="cannot listen"):
        OwnPages("127.0.0.1", port, vitals)


def test_clients_that_say_nothing_are_bounded(base: str) -> None:
    port = int(base.rpartition(":")[2])
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(CLIENTS_MAX)]
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as further:
            assert further.recv(1) == b""
    finally:
        for each in silent:
            each.close()
    assert eventually(lambda: _health(base))


def _health(base: str) -> str:
    try:
        return page(f"{base}/health")
    except FetchError:  # the server has not noticed yet that the others are closed
        return ""
