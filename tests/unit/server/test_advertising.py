"""Which host is advertised by a listener on all addresses."""

import socket

import pytest

from barnabas.server.advertising import NoHostNameError, advertised_host, is_name_for_others

KEY = "broker.advertised_host"


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A machine with a fully qualified name and a host name."""
    full, short = request.param
    monkeypatch.setattr(socket, "getfqdn", lambda: full)
    monkeypatch.setattr(socket, "gethostname", lambda: short)


@pytest.mark.parametrize("named", [("localhost", "localhost")], indirect=True)
@pytest.mark.usefixtures("named")
def test_what_is_configured_and_what_is_bound_come_first() -> None:
    assert advertised_host("0.0.0.0", "kafka.example", KEY) == "kafka.example"
    assert advertised_host("127.0.0.1", None, KEY) == "127.0.0.1"
    assert advertised_host("10.0.0.1", None, KEY) == "10.0.0.1"


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        (("kafka-1.example", "kafka-1"), "kafka-1.example"),
        (("localhost", "kafka-1"), "kafka-1"),
        (("localhost.localdomain", "kafka-1"), "kafka-1"),
        (("1.0.0.127.in-addr.arpa", "kafka-1"), "kafka-1"),
    ],
    indirect=["named"],
)
@pytest.mark.usefixtures("named")
def test_a_listener_on_all_addresses_has_the_machines_name(shown: str) -> None:
    for host in ("0.0.0.0", "::", "", "::0", "::ffff:0.0.0.0"):
        assert advertised_host(host, None, KEY) == shown


@pytest.mark.parametrize(
    "named",
    [
        ("localhost", "localhost"),
        ("", ""),
        ("ip6-localhost", "0.0.0.0"),
        ("localhost4.localdomain4", "127.0.1.1"),
    ],
    indirect=True,
)
@pytest.mark.usefixtures("named")
def test_a_machine_without_a_name_is_told_what_to_set() -> None:
    with pytest.raises(NoHostNameError, match=r"set broker\.advertised_host"):
        advertised_host("0.0.0.0", None, KEY)


@pytest.mark.parametrize("wildcard", ["0.0.0.0", "::", "[::]", "0", "0x0", "::ffff:0.0.0.0"])
def test_no_wildcard_is_advertised(wildcard: str) -> None:
    with pytest.raises(NoHostNameError, match=r"set broker\.advertised_host to a name"):
        advertised_host("0.0.0.0", wildcard, KEY)


def test_names_that_begin_alike_are_names() -> None:
    assert is_name_for_others("localhost-7.example")
    assert not is_name_for_others("LOCALHOST.localdomain")
