"""Tests the benchmark of TLS, logins and ACLs: its plans, files and report."""

from collections import Counter
from dataclasses import replace

import pytest
import yaml

from bench import secured
from bench.__main__ import cluster_plan_of, parser, plan_of, saves_group, security_plan_of
from bench.access import PASSWORD, USER, Files, Listener, Setup, access_to
from bench.cluster_report import CLUSTER_TITLE, spliced
from bench.loads import Handshakes, Requests, Target
from bench.measure import Plan
from bench.results import Results, Sample
from bench.secured import (
    FILES,
    SECURED_BROKERS,
    SecuredBarnabas,
    SecuredKafka,
    barnabas_settings,
    bindings,
    kafka_properties,
)
from bench.security_report import SECURITY_TITLE, cost_section, render_security
from bench.security_rows import COSTS, EVERY_SECURITY_ROW, SECURITY_ROWS

PORTS = {listener: 9092 + number for number, listener in enumerate(Listener)}
TARGET = Target(port=1, topic="t", partitions=1, output="", seconds=1, warmup=1, cpu_s=lambda: 0.0)


def plan(*words: str) -> Plan:
    return security_plan_of(parser().parse_args(words))


# --- what is run ---------------------------------------------------------------------------------


def test_a_run_without_words_measures_security_too() -> None:
    assert plan().rows == list(SECURITY_ROWS)
    assert all(row.setup is not Setup.PLAIN for row in SECURITY_ROWS)


def test_security_alone() -> None:
    options = parser().parse_args(["--only", "security"])
    assert security_plan_of(options).rows == list(SECURITY_ROWS)
    assert not plan_of(options).steps
    assert not cluster_plan_of(options).steps
    assert saves_group(options, EVERY_SECURITY_ROW)
    assert not plan("--only", "ack-latency").steps


def test_only_brokers_that_rows_need_are_started() -> None:
    chosen = plan("--quick", "--only", "acls-10000")
    assert [(broker.name, broker.setup) for broker in chosen.brokers] == [
        ("barnabas", Setup.ACLS),
        ("kafka", Setup.ACLS),
    ]
    assert chosen.steps == 2


def test_each_row_runs_on_both_brokers_once_a_round() -> None:
    whole = plan("--rounds", "1")
    runs = Counter(
        (broker.name, row.key) for broker in whole.brokers for row in whole.rows_of(broker)
    )
    assert set(runs) == {(name, r.key) for name in SECURED_BROKERS for r in SECURITY_ROWS}
    assert set(runs.values()) == {1}
    assert whole.steps == len(runs)


# --- the brokers ---------------------------------------------------------------------------------


def last_values(properties: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in properties.splitlines())


def test_both_brokers_have_the_same_listeners() -> None:
    ours = yaml.safe_load(barnabas_settings(PORTS, Setup.SECURED))["listeners"]
    theirs = last_values(kafka_properties(PORTS, 9999, FILES.folder / "keystore", Setup.SECURED))
    named = dict(each.split("://") for each in theirs["listeners"].split(","))
    protocols = dict(
        each.split(":") for each in theirs["listener.security.protocol.map"].split(",")
    )
    for listener, port in PORTS.items():
        assert ours[listener.value]["listen"] == named[listener.value] == f"127.0.0.1:{port}"
        assert ours[listener.value]["protocol"] == protocols[listener.value]
    assert ours["MTLS"]["client_authentication"] == "required"
    assert theirs["listener.name.mtls.ssl.client.auth"] == "required"


@pytest.mark.parametrize(("setup", "has_acls"), [(Setup.SECURED, False), (Setup.ACLS, True)])
def test_the_authorizer_is_on_for_the_acls_alone(setup: Setup, has_acls: bool) -> None:
    ours = yaml.safe_load(barnabas_settings(PORTS, setup))
    theirs = last_values(kafka_properties(PORTS, 9999, FILES.folder / "keystore", setup))
    assert ("security" in ours) is ("authorizer.class.name" in theirs) is has_acls


def test_the_user_is_allowed_to_write_by_one_of_10_000_acls() -> None:
    made = list(bindings())
    assert len(made) == 10_000
    allowed = [
        each
        for each in made
        if each.principal == f"User:{USER}" and "bench-1".startswith(each.name)
    ]
    assert [each.operation.name for each in allowed] == ["WRITE"]


def test_secured_brokers_answer_to_the_names_of_the_plain_ones() -> None:
    for broker in (SecuredBarnabas(Setup.ACLS), SecuredKafka(Setup.ACLS)):
        assert broker.name in SECURED_BROKERS
        ports = broker.choose_ports(9092)
        assert ports[Listener.PLAINTEXT] == 9092
        entry = broker.entry(Listener.TLS, 9092)
        assert (entry.port, entry.access.wire) == (ports[Listener.TLS], ("--tls",))


# --- the clients ---------------------------------------------------------------------------------


def test_each_client_gets_what_a_listener_asks_for() -> None:
    files = Files(folder=FILES.folder)
    login = access_to(Listener.SASL_SSL, files)
    assert dict(login.rdkafka)["sasl.password"] == PASSWORD
    assert dict(login.java)["ssl.truststore.type"] == "PEM"
    assert login.wire == ("--tls", "--user", USER, "--password", PASSWORD)
    assert "--tls" not in access_to(Listener.SASL_PLAINTEXT, files).wire
    assert "--certificate" in access_to(Listener.MTLS, files).wire
    assert access_to(Listener.PLAINTEXT, files).wire == ()


def test_loads_pass_on_how_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def record(command: list[object], _timeout_s: float) -> str:
        commands.append([str(word) for word in command])
        return '{"per_second": 100, "total": 200, "p99_ms": 1}'

    monkeypatch.setattr("bench.loads.output_of", record)
    used = iter([1.0, 3.0, 3.0, 3.5])
    target = replace(TARGET, access=access_to(Listener.TLS, FILES), cpu_s=lambda: next(used))
    handshakes = Handshakes(connections=16).run(target)
    assert handshakes["cpu_ms_per_handshake"] == 10
    assert handshakes["handshakes_per_s"] == 100
    assert Requests(connections=16).run(target)["cpu_us_per_request"] == 2500
    assert all("--tls" in words for words in commands)
    assert ["--handshakes" in words for words in commands] == [True, False]


# --- the page ------------------------------------------------------------------------------------


def sample(row: str, broker: str, **figures: float) -> Sample:
    return Sample(row=row, broker=broker, round=1, figures=figures)


RESULTS = Results(
    facts={"date": "today"},
    titles={"barnabas": "Barnabas", "kafka": "Kafka"},
    samples=[
        sample("plain-requests-16", "barnabas", requests_per_s=1000, cpu_us_per_request=10),
        sample("tls-requests-16", "barnabas", requests_per_s=500, cpu_us_per_request=15),
        sample("plain-requests-16", "kafka", requests_per_s=800, cpu_us_per_request=40),
    ],
)


def test_the_cost_is_that_of_a_broker_beside_itself() -> None:
    lines = cost_section(RESULTS).splitlines()
    assert (
        "| TLS, 16 connections | requests a second (req/s) | 1,000 | 500 | 0.50x | 800 |  |  |"
        in lines
    )
    assert len([line for line in lines if line.startswith("| TLS")]) == 2
    assert "10,000 ACLs" not in "".join(lines)


def test_costs_compare_rows_that_there_are() -> None:
    keys = {row.key for row in SECURITY_ROWS}
    assert {key for cost in COSTS for key in (cost.without, cost.with_it)} <= keys


def test_parts_of_the_page_are_replaced_alone() -> None:
    security = render_security(RESULTS)
    assert security.startswith(f"{SECURITY_TITLE}\n")
    page = spliced("# Benchmark results\n\nold\n", cluster=f"{CLUSTER_TITLE}\n\nthree\n")
    both = spliced(page, security=f"{SECURITY_TITLE}\n\ntls\n")
    expected = ["# Benchmark results", "old", SECURITY_TITLE, "tls", CLUSTER_TITLE, "three"]
    assert both.split("\n\n") == [*expected[:-1], "three\n"]
    assert spliced(both, security=f"{SECURITY_TITLE}\n\nnew\n") == both.replace("tls", "new")
    assert spliced(both, single="# Benchmark results\n\nnew\n") == both.replace("old", "new")
    assert spliced(both, cluster=f"{CLUSTER_TITLE}\n\n3\n") == both.replace("three", "3")


def test_certificates_are_made_once(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(folder=tmp_path_factory.mktemp("certificates"))
    monkeypatch.setattr(secured, "FILES", files)
    secured.make_certificates()
    first = files.broker.read_bytes()
    secured.make_certificates()
    assert files.broker.read_bytes() == first
    assert files.client.exists()
