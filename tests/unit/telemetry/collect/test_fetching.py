"""Tests responses that are complete, cut short, slow, or need credentials."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.telemetry.collect.fetching import FetchError, StatusError, get
from barnabas.telemetry.collect.targets import Access
from tests.support.pipelines.canned_http import Canned, Certificate, answer, trickle

Serve = Callable[..., Canned]
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def fetch(url: str, access: Access | None = None, timeout_s: float = 20.0) -> bytes:
    return get(url, access or Access(), timeout_s=timeout_s, bytes_max=1_000)


@pytest.mark.parametrize(
    "sent",
    [answer(b"page"), b"HTTP/1.0 200 OK\r\n\r\npage", CHUNKED + b"2\r\npa\r\n2\r\nge\r\n0\r\n\r\n"],
)
def test_a_whole_answer_is_returned(serve: Serve, sent: bytes) -> None:
    assert fetch(serve(sent).url) == b"page"


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (answer(b"page", length=9), "cut short: 4 of 9 bytes came"),
        (CHUNKED + b"4\r\npage\r\n", "cut short"),
        (CHUNKED + b"9\r\npage", "cut short"),
        (answer(b"x" * 2_000), "larger than 1,000 bytes"),
        (b"", "Remote end closed connection"),
        (b"SSH-2.0\r\n", "SSH"),
        (answer(b"", "503 Busy"), "answered 503 Busy"),
        (answer(b"", "302 Found"), "answered 302 Found"),
    ],
)
def test_anything_else_is_an_error(serve: Serve, sent: bytes, reason: str) -> None:
    with pytest.raises(FetchError, match=reason):
        fetch(serve(sent).url)


def test_the_status_is_shown(serve: Serve) -> None:
    with pytest.raises(StatusError) as caught:
        fetch(serve(answer(b"", "410 Gone")).url)
    assert caught.value.status == 410


def test_a_server_that_trickles_meets_the_deadline_of_the_whole(serve: Serve) -> None:
    server = serve(trickle)
    with pytest.raises(FetchError, match=r"no complete response within 0\.3 s"):
        fetch(server.url, timeout_s=0.3)


def test_basic_and_bearer_authentication(serve: Serve, tmp_path: Path) -> None:
    server = serve(answer(b"page"))
    token = tmp_path / "token"
    token.write_text("first\n")
    fetch(server.url, Access(username="me", password="s3cret"))
    fetch(server.url, Access(token_file=str(token)))
    token.write_text("second\n")
    fetch(server.url, Access(token_file=str(token)))
    wanted = [b"Basic " + base64.b64encode(b"me:s3cret"), b"Bearer first", b"Bearer second"]
    for request, header in zip(server.requests, wanted, strict=True):
        assert b"\r\nAuthorization: " + header + b"\r\n" in request


def test_a_secret_that_is_missing_is_an_outage(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"cannot read .*token"):
        fetch(serve(answer(b"page")).url, Access(token_file=str(tmp_path / "token")))


def test_certificates_are_checked(serve: Serve, certificate: Certificate) -> None:
    server = serve(answer(b"page"), context=certificate.server())
    trusted = str(certificate.certificate)
    assert fetch(server.url, Access(ca_file=trusted, server_name="exporter")) == b"page"
    assert fetch(server.url, Access(insecure=True)) == b"page"
    with pytest.raises(FetchError, match="certificate is not trusted"):
        fetch(server.url)
    with pytest.raises(FetchError, match="certificate is not trusted"):
        fetch(server.url, Access(ca_file=trusted))  # 127.0.0.1 is not its name
    with pytest.raises(FetchError, match=r"cannot read .*none\.pem"):
        fetch(server.url, Access(ca_file="none.pem"))


def test_a_client_shows_its_certificate(serve: Serve, certificate: Certificate) -> None:
    server = serve(answer(b"page"), context=certificate.server(wants_client=True))
    files = {"cert_file": str(certificate.certificate), "key_file": str(certificate.key)}
    trusted = Access(ca_file=files["cert_file"], server_name="exporter")
    mine = Access(
        ca_file=trusted.ca_file,
        server_name="exporter",
        cert_file=files["cert_file"],
        key_file=files["key_file"],
    )
    assert fetch(server.url, mine) == b"page"
    with pytest.raises(FetchError):
        fetch(server.url, trusted)
