"""Tests the answers of the console that come from the watcher's last state."""

import math
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from barnabas.admin.cluster_overview import FENCED, Broker
from barnabas.console.state.broker_routes import slow_request
from barnabas.monitor.states import GroupStatus
from tests.support.console.made_states import TAKEN_MS, FakeWatcher, make_broker, make_state
from tests.support.console.running_console import RunningConsole

HOSTILE = (
    "<script>alert(1)</script>",
    "a/b",
    "..%2F..%2Fetc",
    "☃ naïve",
    "x" * 249,
    "a'\"b&c;--",
    "name\u2028with\u2029breaks",
    "configs",
)


@pytest.fixture
def watcher() -> FakeWatcher:
    return FakeWatcher(make_state(["orders", "clicks", "__internal"], {"billing": {"orders": 7}}))


@pytest.fixture
def console(watcher: FakeWatcher) -> Iterator[RunningConsole]:
    with RunningConsole(watcher) as running:
        yield running


def test_the_overview_has_health_counts_and_the_worst(console: RunningConsole) -> None:
    found = console.get("/api/overview")
    assert found["health"]["verdict"] == "healthy"
    assert found["counts"] == {
        "brokers": 3, "brokers_up": 3, "topics": 2, "partitions": 6, "groups": 1, "members": 1,
    }  # fmt: skip
    assert found["groups_by_status"]["behind"] == 1
    assert [group["name"] for group in found["worst_groups"]] == ["billing"]
    assert [topic["name"] for topic in found["hottest_topics"]] == ["__internal", "clicks"]
    assert found["history"]["times_ms"][0] == TAKEN_MS
    assert found["history"]["records_per_s"] == [None, 1.5, None]
    assert found["history"]["produce_p99_s"] == [None, None, None]
    assert found["throughput"]["fetch_p99_s"] is None


def test_before_the_first_state_the_answer_says_why() -> None:
    with RunningConsole(FakeWatcher(None, failure="No broker answered at x:1")) as console:
        found = console.get("/api/topics", status=502)
    assert found["code"] == "no_state"
    assert "No broker answered at x:1" in found["error"]


def test_topics_are_searched_sorted_and_paged(console: RunningConsole) -> None:
    assert [each["name"] for each in console.get("/api/topics")["items"]] == ["clicks", "orders"]
    everything = console.get("/api/topics", internal=1, sort="-size_bytes")
    assert [each["name"] for each in everything["items"]] == ["__internal", "clicks", "orders"]
    page = console.get("/api/topics", internal=1, sort="name", offset=1, limit=1)
    assert page["total"] == 3
    assert [each["name"] for each in page["items"]] == ["clicks"]
    assert [each["name"] for each in console.get("/api/topics", search="ORD")["items"]] == [
        "orders"
    ]


@pytest.mark.parametrize(
    "parameters", [{"sort": "nothing"}, {"limit": "-1"}, {"limit": "0"}, {"offset": "1e9"}]
)
def test_a_wrong_list_query_is_refused_with_a_sentence(
    console: RunningConsole, parameters: dict[str, str]
) -> None:
    found = console.get("/api/topics", status=400, **parameters)
    assert found["code"] == "bad_input"


def test_a_list_shows_the_next_state_once_it_is_there(
    console: RunningConsole, watcher: FakeWatcher
) -> None:
    assert console.get("/api/topics")["total"] == 2
    watcher.publish(make_state(["orders", "new"], taken_ms=TAKEN_MS + 1))
    found = console.get("/api/topics")
    assert [each["name"] for each in found["items"]] == ["new", "orders"]
    assert found["taken_ms"] == TAKEN_MS + 1


def test_a_topic_has_its_partitions_and_groups(console: RunningConsole) -> None:
    found = console.get("/api/topics/orders")
    assert [each["number"] for each in found["partition_list"]] == [0, 1]
    assert found["group_list"] == [{"name": "billing", "lag": 7, "lag_s": 70.0, "status": "behind"}]


def test_a_group_has_members_partitions_and_never_for_an_endless_lag(
    console: RunningConsole,
) -> None:
    found = console.get("/api/groups/billing")
    assert found["eta_s"] == "never"
    assert found["member_list"][0]["partitions"] == [{"topic": "orders", "partition": 0}]
    assert found["partition_list"][0]["lag"] == 7
    assert found["history"]["lag"] == [None, 1.5, None]


def test_groups_are_listed_by_status(console: RunningConsole) -> None:
    assert console.get("/api/groups")["total"] == 1
    assert console.get("/api/groups?status=behind")["total"] == 1
    assert console.get("/api/groups?status=stopped")["total"] == 0
    console.get("/api/groups?status=lost", status=400)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_found_and_only_text(name: str) -> None:
    state = make_state([name], {name: {name: 1}})
    with RunningConsole(FakeWatcher(state)) as console:
        path = quote(name, safe="")
        assert console.get(f"/api/topics/{path}")["name"] == name
        assert console.get(f"/api/groups/{path}")["name"] == name
        answer = console.raw("GET", "/api/topics")
        assert b"<" not in answer.content
        assert answer.json()["items"][0]["name"] == name
        assert answer.headers["content-type"] == "application/json"
        hits = console.get("/api/search", q=name[:5])["items"]
        assert {hit["kind"] for hit in hits} == {"topic", "group"}


def test_a_group_named_with_dots_is_found_by_the_name_encoded_twice() -> None:
    with RunningConsole(FakeWatcher(make_state((), {"..": {"orders": 1}}))) as console:
        url = console.get("/api/search", q="..")["items"][0]["url"]
        assert url == "/groups/%252E%252E"
        answer = console.raw("GET", f"/api{url}")
        assert answer.json()["name"] == ".."


def test_what_does_not_exist_is_not_found(console: RunningConsole) -> None:
    assert console.get("/api/topics/none", status=404)["code"] == "not_found"
    assert console.get("/api/groups/none", status=404)["code"] == "not_found"
    assert console.get("/api/brokers/9", status=404)["error"].endswith("has 1, 2, 3")
    assert console.get("/api/none", status=404)["code"] == "not_found"


def test_brokers_have_their_figures_and_null_where_nothing_is_known(
    console: RunningConsole,
) -> None:
    first, second, _ = console.get("/api/brokers")["items"]
    assert (first["version"], first["connections"], first["is_controller"]) == ("0.2.0", 7, True)
    assert (second["version"], second["connections"]) == (None, None)
    assert math.isclose(first["disk_used_ratio"], 0.6)


def test_a_broker_says_what_its_restart_would_cost() -> None:
    state = make_state(at_min_isr=[("orders", 0)])
    with RunningConsole(FakeWatcher(state)) as console:
        found = console.get("/api/brokers/1")
        assert found["restart_safe"]["safe"] is False
        assert "orders-0" in found["restart_safe"]["reasons"][0]
        assert console.get("/api/brokers/3")["restart_safe"]["safe"] is True
        assert found["configs"] is None  # no broker answers here
        assert found["slow_requests"] == []
        assert console.get("/api/brokers/3")["slow_requests"] is None, "it serves no metrics"
        assert found["configs_failure"]
        assert found["quorum"] == {"role": "leader", "lag": 0, "last_contact_ms": 0}


def test_a_slow_request_says_where_its_time_went() -> None:
    at_broker = {
        "time_ms": 5, "api": "Fetch v17", "client_id": "app", "client": "127.0.0.1",
        "bytes_in": 10, "bytes_out": 90, "total_ms": 700.5, "queue_ms": 1, "handler_ms": 2.5,
        "disk_ms": 600, "peers_ms": float("inf"),
    }  # fmt: skip
    found = slow_request(at_broker)
    assert (found["at_ms"], found["host"], found["bytes"], found["took_ms"]) == (
        5, "127.0.0.1", 100, 700.5,
    )  # fmt: skip
    assert found["parts"] == {
        "loop": 1, "handler": 2.5, "disk": 600, "peers": None, "sending": None,
    }  # fmt: skip


def test_the_heat_map_has_the_hottest_cells_first(console: RunningConsole) -> None:
    found = console.get("/api/heatmap", by="size")
    topic, broker, partition, value, is_leader = found["cells"][0]
    assert found["topics"][topic] == "__internal"
    assert (found["brokers"][broker], partition, value) in {(2, 1, 3001), (3, 1, 3001)}
    assert is_leader in (True, False)
    values = [cell[3] for cell in found["cells"]]
    assert values == sorted(values, reverse=True)
    lags = console.get("/api/heatmap", by="lag")
    assert {found["topics"][cell[0]] for cell in lags["cells"]} <= {"orders", "__internal"}
    assert lags["topics"] == ["orders"]
    console.get("/api/heatmap", by="colour", status=400)


def test_the_quorum_is_as_the_command_prints_it(console: RunningConsole) -> None:
    found = console.get("/api/quorum")
    assert (found["leader"], found["epoch"], len(found["voters"])) == (1, 3, 3)


def test_alerts_are_pending_then_fire_then_are_ok(watcher: FakeWatcher) -> None:
    fenced = [make_broker(1), make_broker(2, FENCED), make_broker(3, disk_free=0.01)]
    with RunningConsole(watcher) as console:
        assert state_of(console, "BrokerDown") == {"ok"}
        watcher.publish(make_state(brokers=fenced))
        assert state_of(console, "BrokerDown") == {"pending"}
        assert state_of(console, "DiskCritical") == {"pending"}
        watcher.publish(make_state(brokers=fenced, taken_ms=TAKEN_MS + 61_000))
        down = alerts(console, "BrokerDown")[0]
        assert (down["state"], down["since_ms"]) == ("firing", TAKEN_MS)
        assert down["labels"] == {"broker": "2"}
        watcher.publish(make_state(taken_ms=TAKEN_MS + 71_000))
        assert state_of(console, "BrokerDown") == {"ok"}


def test_a_stopped_group_and_offline_partitions_are_alerts(watcher: FakeWatcher) -> None:
    state = make_state(
        groups={"billing": {"orders": 50}},
        status=GroupStatus.STOPPED,
        offline=[("orders", 0)],
        controller=None,
    )
    with RunningConsole(watcher) as console:
        watcher.publish(state)
        wrong = {each["name"] for each in console.get("/api/alerts")["items"] if each["since_ms"]}
    assert wrong == {"GroupStopped", "OfflinePartitions", "NoController"}


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        ([make_broker(1), make_broker(2)], {"UnderReplicated"}),
        ([make_broker(1), make_broker(2, FENCED)], {"BrokerDown"}),
        ([make_broker(1), make_broker(2, disk_free=0.01)], {"DiskCritical"}),
        ([make_broker(1), make_broker(2, disk_free=0.1)], {"DiskLow", "UnderReplicated"}),
    ],
    ids=["no cause", "fenced", "full disk", "not yet full disk"],
)
def test_one_cause_raises_one_alert(
    watcher: FakeWatcher, brokers: list[Broker], expected: set[str]
) -> None:
    with RunningConsole(watcher) as console:
        watcher.publish(make_state(brokers=brokers, under_replicated=[("orders", 0)]))
        wrong = {each["name"] for each in console.get("/api/alerts")["items"] if each["since_ms"]}
    assert wrong == expected


def test_ten_thousand_topics_and_groups_are_listed_quickly() -> None:
    names = [f"topic-{number:05}" for number in range(10_000)]
    state = make_state(names, {name: {name: 3} for name in names}, partitions=1)
    with RunningConsole(FakeWatcher(state)) as console:
        for path in ("/api/topics", "/api/groups"):
            found = console.get(path, sort="-name", offset=9_000, limit=1_000)
            assert found["total"] == 10_000
            assert found["items"][0]["name"] == "topic-00999"
            assert console.get(path, search="topic-0123")["total"] == 10
        assert len(console.get("/api/search", q="topic")["items"]) == 20
        assert len(console.get("/api/heatmap", by="size")["cells"]) == 5_000


def alerts(console: RunningConsole, name: str) -> list[dict[str, object]]:
    return [each for each in console.get("/api/alerts")["items"] if each["name"] == name]


def state_of(console: RunningConsole, name: str) -> set[object]:
    return {each["state"] for each in alerts(console, name)}
