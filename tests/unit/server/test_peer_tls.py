"""TLS between brokers: both ends verify each other, and a failure is not taken for a death."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from barnabas.effects import Address
from barnabas.model.callers import PEER_LISTENER
from barnabas.model.security_settings import TlsFiles
from barnabas.model.timers import Timer
from barnabas.node.cluster.broker_probing import QUICKLY_MS
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.server.peers.peer_connection import PAUSE_MS
from barnabas.server.peers.peer_names import PeerNames
from barnabas.server.tls.handshakes import ListenerTls
from barnabas.server.tls.tls_context import TlsContexts
from barnabas.testing.waiting import eventually
from tests.support.security.certificates import Certificates, Files
from tests.support.security.tls_clients import SecureClient, trusting
from tests.support.talk.peer_pair import Pair

HELLO = ApiVersionsRequest(client_software_name="broker", client_software_version="1")
LARGE_BYTES = 3_000_000


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "certificates")


def contexts(certificates: Certificates, files: Files) -> TlsContexts:
    return TlsContexts(
        TlsFiles(
            certificate=files.certificate,
            key=files.key,
            authorities=certificates.authority,
            client_authentication="required",
        ),
        connects=True,
    )


def secured(pair: Pair, tls: TlsContexts, names: tuple[str, ...] = ()) -> Address:
    """Bind another listener of the answering broker, for brokers over TLS."""
    known = ListenerTls(tls, None, PeerNames(names, lambda: ()))
    address = pair.answerer.bind("127.0.0.1", 0, named=PEER_LISTENER, tls=known)
    pair.answerer.listen(peers=True)
    return Address(*address)


def warnings(log: StringIO) -> list[str]:
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    return [str(line.get("problem")) for line in lines if line["level"] == "warning"]


def took_ms(pair: Pair, address: Address) -> int | None:
    """Ask, and return after how long there was no answer; None if there was one."""
    asked_ms = pair.asker.monotonic_ms()
    answer = pair.wait(pair.ask(HELLO, address=address))
    return None if answer is not None else pair.asker.monotonic_ms() - asked_ms


def test_brokers_that_trust_each_other_talk(pair: Pair, certificates: Certificates) -> None:
    tls = contexts(certificates, certificates.broker())
    pair.asker.peers.tls = tls
    address = secured(pair, tls)
    assert took_ms(pair, address) is None
    answers = [pair.ask(MetadataRequest(topics=None), address=address) for _ in range(50)]
    assert all(pair.wait(each) is not None for each in answers)


def test_large_requests_and_responses(pair: Pair, certificates: Certificates) -> None:
    tls = contexts(certificates, certificates.broker())
    pair.asker.peers.tls = tls
    address = secured(pair, tls)
    names = "x" * 30_000  # no topic has such a name; the answer repeats it
    request = MetadataRequest(topics=None)
    request.topics = [MetadataRequestTopic(name=names) for _ in range(LARGE_BYTES // len(names))]
    answer = pair.wait(pair.ask(request, address=address))
    assert sum(len(topic.name) for topic in answer.topics) == LARGE_BYTES


@pytest.mark.parametrize("wrong", ["stranger", "other host", "expired", "no tls"])
def test_a_broker_that_is_not_verified_is_not_taken_for_dead(
    pair: Pair, certificates: Certificates, tmp_path: Path, log: StringIO, wrong: str
) -> None:
    usable = contexts(certificates, certificates.broker())
    there = usable
    if wrong == "stranger":
        others = Certificates(tmp_path / "others")
        there = contexts(others, others.broker())
    elif wrong == "other host":
        there = contexts(certificates, certificates.broker("far", hosts=("far.example",)))
    elif wrong == "expired":
        expired = certificates.expired()
        there.accepting.load_cert_chain(*expired)  # as if it had expired since
    pair.asker.peers.tls = usable
    address = pair.address if wrong == "no tls" else secured(pair, there)
    no_answer_ms = took_ms(pair, address)
    assert no_answer_ms is not None
    assert no_answer_ms > QUICKLY_MS
    assert warnings(log)


@pytest.mark.parametrize("wrong", ["stranger", "client"])
def test_a_broker_is_not_served_without_a_certificate_of_a_broker(
    pair: Pair, certificates: Certificates, tmp_path: Path, log: StringIO, wrong: str
) -> None:
    address = secured(pair, contexts(certificates, certificates.broker()))
    if wrong == "stranger":
        others = Certificates(tmp_path / "others")
        mine, said = contexts(others, others.broker()), "not from the listener's authorities"
        mine.connecting = trusting(certificates, others.broker())
    else:
        mine = contexts(certificates, certificates.client("alice"))
        said = "add its name to cluster.tls_peer_names"
    pair.asker.peers.tls = mine
    no_answer_ms = took_ms(pair, address)
    assert no_answer_ms is not None
    assert no_answer_ms > QUICKLY_MS
    assert any(said in each for each in warnings(log))


def test_a_broker_without_tls_is_not_served(
    pair: Pair, certificates: Certificates, log: StringIO
) -> None:
    address = secured(pair, contexts(certificates, certificates.broker()))
    no_answer_ms = took_ms(pair, address)
    assert no_answer_ms is not None
    assert no_answer_ms > QUICKLY_MS
    assert any("set cluster.tls_certificate on both" in each for each in warnings(log))


def test_a_refused_port_is_reported_at_once(
    pair: Pair, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.asker.peers.tls = contexts(certificates, certificates.broker())
    delays: list[int] = []
    after = pair.asker.node.timers.after

    def noted(delay_ms: int, action: Callable[[], None]) -> Timer:
        delays.append(delay_ms)
        return after(delay_ms, action)

    monkeypatch.setattr(pair.asker.node.timers, "after", noted)
    pair.answerer.stop_listening()
    assert took_ms(pair, pair.address) is not None
    assert PAUSE_MS not in delays


@pytest.mark.parametrize(
    ("names", "accepted"),
    [
        ({"DNS": "broker-1.example"}, True),
        ({"DNS": "BROKER-1.example"}, True),
        ({"IP Address": "10.0.0.7"}, True),
        ({"IP Address": "0:0:0:0:0:0:0:7"}, True),
        ({"DNS": "spare.brokers.example"}, True),
        ({"DNS": "deep.spare.brokers.example"}, False),
        ({"DNS": "brokers.example"}, False),
        ({"DNS": "exact"}, True),
        ({"DNS": "10.0.0.7"}, True),
        ({"email": "broker-1.example"}, False),
        ({}, False),
    ],
)
def test_names_of_brokers(names: dict[str, str], *, accepted: bool) -> None:
    known = PeerNames(["*.brokers.example", "exact"], lambda: ["broker-1.example", "::7"])
    certificate = {"subjectAltName": tuple(names.items())} if names else {}
    assert known.accepts(certificate, "::ffff:10.0.0.7") == accepted


def test_a_client_cannot_call_the_port_for_brokers(pair: Pair, certificates: Certificates) -> None:
    host, port = secured(pair, contexts(certificates, certificates.broker()))
    refused: list[Exception] = []

    def ask() -> None:
        context = trusting(certificates, certificates.client("alice"))
        try:
            with SecureClient((host, port), context) as client:
                client.send_request(HELLO, 0)
                client.receive_frame()
        except (ssl.SSLError, OSError, EOFError) as error:
            refused.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(
        lambda: pair.loop.run_until_complete(asyncio.sleep(0.01)) or not thread.is_alive(), 30
    )
    assert refused
