"""Certificates are reloaded when their files change, and unusable ones change nothing."""

import json
import shutil
import signal
import ssl
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.model.security_settings import ListenerSettings, TlsFiles
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.server.tls.certificates import Certificates as BrokerCertificates
from barnabas.server.tls.tls_context import (
    DAY_S,
    TlsContexts,
    TlsFilesError,
    check,
    check_between_brokers,
    server_context,
)
from barnabas.testing.broker import Broker
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually
from tests.support.security.certificates import Certificates, Files, secure
from tests.support.security.tls_clients import SecureClient, trusting

PATIENCE_S = 30


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "certificates")


def events(log: StringIO) -> list[str]:
    return [json.loads(line)["event"] for line in log.getvalue().splitlines()]


def files_of(files: Files, authorities: str | None = None) -> TlsFiles:
    return TlsFiles(certificate=files.certificate, key=files.key, authorities=authorities)


def replace_by(old: Files, new: Files) -> None:
    """Replace files as tools do that renew certificates: by renaming."""
    for there, here in zip(old, new, strict=True):
        shutil.copy(here, there + ".new")
        Path(there + ".new").replace(there)


def served(broker: Broker, certificates: Certificates) -> bytes | None:
    """Return the certificate that a new connection gets, after a request."""
    with SecureClient(broker.listeners["SECURE"], trusting(certificates)) as client:
        assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
        assert isinstance(client.socket, ssl.SSLSocket)
        return client.socket.getpeercert(binary_form=True)


def test_changed_files_are_served_and_open_connections_go_on(certificates: Certificates) -> None:
    files = certificates.broker()
    interval = {"security.certificate_check_interval": "50ms"}
    with Broker(settings={**secure(certificates, files), **interval}) as broker:
        before = served(broker, certificates)
        with SecureClient(broker.listeners["SECURE"], trusting(certificates)) as open_one:
            open_one.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
            replace_by(files, certificates.broker("other"))
            eventually(lambda: served(broker, certificates) != before, PATIENCE_S)
            assert open_one.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def test_a_hangup_signal_reloads_at_once(certificates: Certificates, tmp_path: Path) -> None:
    files = certificates.broker()
    config = tmp_path / "barnabas.yaml"
    config.write_text(
        "listeners:\n  SECURE:\n    listen: 127.0.0.1:0\n    protocol: SSL\n"
        f"    certificate: {files.certificate}\n    key: {files.key}\n"
        "security:\n  certificate_check_interval: 0\n"
    )
    arguments = ("--config", str(config))
    with BrokerSubprocess(tmp_path / "data", arguments=arguments, listener="SECURE") as broker:
        replace_by(files, certificates.broker("other"))
        broker.send(signal.SIGHUP)
        (line,) = broker.wait_for_log("loaded a certificate")
        assert line["files_of"] == "listener SECURE"
        with SecureClient(broker.address, trusting(certificates)) as client:
            assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def test_events_of_connections_with_tls_are_timed(certificates: Certificates) -> None:
    slow = {"performance.slow_event_time": "1h"}
    with Broker(settings={**secure(certificates, certificates.broker()), **slow}) as broker:
        served(broker, certificates)
        assert broker._process is not None
        found = broker._process.server.slow_events
        assert found is not None
        assert found.longest.duration_ms > 0


def test_files_behind_links_are_watched(certificates: Certificates, tmp_path: Path) -> None:
    first, second = certificates.broker("first"), certificates.broker("second")
    links = Files(str(tmp_path / "link.pem"), str(tmp_path / "link.key"))
    for target, link in zip(first, links, strict=True):
        Path(link).symlink_to(target)
    contexts = TlsContexts(files_of(links))
    before = contexts.accepting
    contexts.reload_if_changed()
    assert contexts.accepting is before
    for target, link in zip(second, links, strict=True):
        Path(link).unlink()
        Path(link).symlink_to(target)
    contexts.reload_if_changed()
    assert contexts.accepting is not before


def test_unusable_files_keep_the_old_certificate(certificates: Certificates, log: StringIO) -> None:
    files, expired = certificates.broker(), certificates.expired()
    with Broker(settings=secure(certificates, files)) as broker:
        assert broker._process is not None
        assert broker._loop is not None
        before = served(broker, certificates)
        stranger = certificates.broker("stranger")
        for wrong in (Files(stranger.certificate, expired.key), expired):
            replace_by(files, wrong)
            count = events(log).count("kept the old certificate: the new files cannot be used")
            broker._loop.call_soon_threadsafe(broker._process.reload_certificates)
            eventually(
                lambda count=count: (
                    events(log).count(  # type: ignore[misc]
                        "kept the old certificate: the new files cannot be used"
                    )
                    > count
                ),
                PATIENCE_S,
            )
            assert served(broker, certificates) == before
        Path(files.certificate).unlink()
        broker._loop.call_soon_threadsafe(broker._process.reload_certificates)
        assert served(broker, certificates) == before


def test_an_empty_file_of_authorities_keeps_the_old_ones(
    certificates: Certificates, tmp_path: Path, log: StringIO
) -> None:
    authorities = tmp_path / "authorities.pem"
    shutil.copy(certificates.authority, authorities)
    files = files_of(certificates.broker(), str(authorities))
    contexts = TlsContexts(replace(files, client_authentication="required"))
    before = contexts.accepting
    authorities.write_text("")
    contexts.reload_if_changed()
    assert contexts.accepting is before
    assert events(log) == ["kept the old certificate: the new files cannot be used"]


@pytest.mark.parametrize(
    ("days_left", "event"),
    [
        (31, None),
        (29.5, "a certificate expires soon; replace its file"),
        (-1, "a certificate has expired; replace its file"),
    ],
)
def test_the_days_that_are_left_are_logged_once_a_day(
    certificates: Certificates, log: StringIO, days_left: float, event: str | None
) -> None:
    files = files_of(certificates.broker())
    contexts = TlsContexts(files)
    now_s = check(files) - days_left * DAY_S
    contexts.warn_before_expiry(now_s)
    contexts.warn_before_expiry(now_s)
    assert events(log) == ([event] if event else [])


def test_files_that_cannot_be_used_are_named(certificates: Certificates, tmp_path: Path) -> None:
    broker, other = certificates.broker(), certificates.broker("other")
    empty = tmp_path / "empty.pem"
    empty.touch()
    cases = {
        files_of(Files(broker.certificate, other.key)): f"{other.key} is not the key of",
        files_of(Files(str(empty), broker.key)): f"{empty} has no certificate in PEM",
        files_of(Files(broker.certificate, str(empty))): f"{empty} has no private key",
        files_of(Files(broker.certificate, "gone")): "gone cannot be read: No such file",
        files_of(certificates.expired()): "certificate has expired",
        files_of(certificates.client("client", valid_s=-1)): "certificate has expired",
    }
    for files, said in cases.items():
        with pytest.raises(TlsFilesError, match=said.replace("(", r"\(")):
            check(files)


def test_a_broker_must_be_accepted_by_its_own_authorities(
    certificates: Certificates, tmp_path: Path
) -> None:
    others = Certificates(tmp_path / "others")
    broker = certificates.broker()
    with pytest.raises(TlsFilesError, match="not accepted with the authorities in"):
        check_between_brokers(
            TlsFiles(
                certificate=broker.certificate,
                key=broker.key,
                authorities=others.authority,
                client_authentication="required",
            )
        )


def test_authorities_that_are_none_are_refused(certificates: Certificates) -> None:
    broker = certificates.broker()
    for wrong, said in ((broker.key, "has no certificates"), (broker.certificate, "CA:TRUE")):
        files = TlsFiles(
            certificate=broker.certificate,
            key=broker.key,
            authorities=wrong,
            client_authentication="required",
        )
        with pytest.raises(TlsFilesError, match=said):
            server_context(files)


def test_a_key_with_a_password(certificates: Certificates, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    broker = certificates.broker()
    key = load_pem_private_key(Path(broker.key).read_bytes(), None)
    sealed, password = tmp_path / "sealed.key", tmp_path / "password"
    sealed.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"sesame"))
    )
    password.write_text("sesame\n")
    files = TlsFiles(
        certificate=broker.certificate, key=str(sealed), password=("file", str(password))
    )
    assert check(files) > 0
    password.write_text("wrong\n")
    with pytest.raises(TlsFilesError, match="its password is wrong"):
        check(files)
    with pytest.raises(TlsFilesError, match="its password is wrong"):  # OpenSSL does not ask for it
        check(files_of(Files(broker.certificate, str(sealed))))
    unset = TlsFiles(
        certificate=broker.certificate, key=str(sealed), password=("variable", "NO_SUCH_VARIABLE")
    )
    with pytest.raises(TlsFilesError, match="NO_SUCH_VARIABLE"):
        check(unset)


def test_each_listener_reads_its_files_in_an_event_of_its_own(
    certificates: Certificates, tmp_path: Path
) -> None:
    """Testing files takes milliseconds: all at once would hold up the event loop."""
    turns: list[Callable[[], None]] = []
    settings = SimpleNamespace(broker=SimpleNamespace(data_dir=str(tmp_path)))
    image = SimpleNamespace(broker_configs={})
    node = SimpleNamespace(settings=settings, node_id=1, image=image, dynamic_tls=None)
    server: Any = SimpleNamespace(in_turn=turns.append, node=node)
    files = certificates.broker()
    listeners = [
        ListenerSettings(name=name, protocol="SSL", certificate=files.certificate, key=files.key)
        for name in ("ONE", "TWO")
    ]
    kept = BrokerCertificates(server)
    made = [kept.of_listener(each) for each in listeners]
    contexts = [each.contexts for each in made if each is not None]
    before = [each.accepting for each in contexts]
    kept.reload()
    assert [each.accepting for each in contexts] == before
    turns.pop(0)()
    assert contexts[0].accepting is not before[0]
    assert contexts[1].accepting is before[1]
    turns.pop(0)()
    assert contexts[1].accepting is not before[1]
    assert turns == []
