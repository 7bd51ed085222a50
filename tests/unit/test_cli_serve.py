"""Tests the options of `barnabas serve`, and its output when it is ready."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.app import BrokerProcess
from barnabas.cli.serve import _flags, _say_ready, parser
from barnabas.model.errors import ConfigError


def flags(*arguments: str) -> dict[str, object]:
    found = _flags(parser().parse_args(arguments))
    return {name: value for name, value in found.items() if value is not None}


def ready(
    capsys: pytest.CaptureFixture[str],
    peers: tuple[str, int] | None,
    *options: str,
    http: tuple[str, int] | None = None,
) -> str:
    broker: Any = SimpleNamespace(
        node=SimpleNamespace(advertised=("10.0.0.1", 9092)),
        peer_address=peers,
        operators=None if http is None else SimpleNamespace(address=http),
        listeners={"PLAINTEXT": ("10.0.0.1", 9092)},
    )
    _say_ready(parser().parse_args(options), cast("BrokerProcess", broker))
    return capsys.readouterr().out


def test_a_broker_of_a_cluster() -> None:
    voters = "1@10.0.0.1:9192,2@10.0.0.2:9192"
    told = ["--listen", "10.0.0.2:9092", "--peer-listen", "[::1]:9192", "--roles", "both"]
    assert flags("--node-id", "2", "--voters", voters, *told) == {
        "broker.id": "2",
        "broker.host": "10.0.0.2",
        "broker.port": "9092",
        "cluster.voters": voters,
        "cluster.roles": "both",
        "cluster.host": "::1",
        "cluster.port": "9192",
    }


def test_brokers_without_tls_on_a_network_are_allowed_by_a_flag() -> None:
    told = flags("--peer-listen", "10.0.0.2:9192", "--allow-plaintext-peers")
    assert told["cluster.allow_plaintext_peers"] is True
    assert "cluster.allow_plaintext_peers" not in flags("--peer-listen", "10.0.0.2:9192")


@pytest.mark.parametrize("flag", ["--listen", "--peer-listen"])
@pytest.mark.parametrize("address", ["here", "9092", "host:", "host:one"])
def test_an_address_that_is_none(flag: str, address: str) -> None:
    with pytest.raises(ConfigError, match=f"{flag} '{address}' is not HOST:PORT"):
        flags(flag, address)


def test_the_ready_line_names_both_listeners(capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(ready(capsys, ("::1", 9192), "--json"))
    assert (said["listen"], said["peer_listen"]) == ("10.0.0.1:9092", "[::1]:9192")
    assert "on 10.0.0.1:9092, for other brokers on [::1]:9192," in ready(capsys, ("::1", 9192))


def test_a_broker_on_its_own_names_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "peer_listen" not in json.loads(ready(capsys, None, "--json"))
    assert "other brokers" not in ready(capsys, None)


def test_the_ready_line_names_the_http_listener(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(ready(capsys, None, "--json", http=("::1", 9644)))["http"] == "[::1]:9644"
    assert "metrics on http://127.0.0.1:9644/" in ready(capsys, None, http=("127.0.0.1", 9644))
    assert flags("--http", "127.0.0.1:0") == {"observability.http_listen": "127.0.0.1:0"}
