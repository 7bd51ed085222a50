"""`barnabas cert`: files that brokers and clients can use, and nothing overwritten."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from barnabas.cli.cert.cert_command import app
from barnabas.cli.common.failure import CommandError
from barnabas.model.security_settings import TlsFiles
from barnabas.server.tls.tls_context import (
    TlsContexts,
    _shake_hands,
    client_context,
    server_context,
)

runner = CliRunner()


def run(*words: str) -> str:
    result = runner.invoke(app, list(words), catch_exceptions=False, standalone_mode=False)
    if isinstance(result.exception, CommandError):
        raise result.exception
    return result.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "certs"


def files_of(folder: Path, name: str) -> TlsFiles:
    return TlsFiles(
        certificate=str(folder / f"{name}.pem"),
        key=str(folder / f"{name}.key"),
        authorities=str(folder / "ca.pem"),
        client_authentication="required",
    )


def test_brokers_and_clients_can_use_the_files(folder: Path) -> None:
    hosts = ["--hosts", "localhost,kafka.example,::1,itself.invalid"]
    said = run("create", str(folder), *hosts, "--brokers", "2", "--client", "alice")
    assert f"certificate: {folder}/broker-1.pem" in said
    assert f"ssl.key.location={folder}/alice.key" in said
    first, second = (files_of(folder, f"broker-{number}") for number in (1, 2))
    TlsContexts(first, connects=True)
    _shake_hands(server_context(first), client_context(second))
    seen = _shake_hands(server_context(first), client_context(files_of(folder, "alice")))
    listed: Any = seen["subjectAltName"]
    assert ("DNS", "kafka.example") in listed
    assert ("IP Address", "0:0:0:0:0:0:0:1") in listed


def test_keys_are_for_their_owner_only(folder: Path) -> None:
    run("create", str(folder), "--client", "alice")
    keys = sorted(folder.glob("*.key"))
    assert [key.name for key in keys] == ["alice.key", "broker-1.key", "ca.key"]
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}


def test_nothing_is_overwritten(folder: Path) -> None:
    run("create", str(folder))
    before = {file: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(CommandError, match=r"broker-1\.pem exists"):
        run("create", str(folder), "--client", "bob")
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def test_an_authority_signs_more_certificates_later(folder: Path) -> None:
    run("create", str(folder))
    made = json.loads(run("create", str(folder), "--brokers", "0", "--client", "bob", "--json"))
    assert list(made["certificates"]) == ["bob"]
    broker, bob = files_of(folder, "broker-1"), files_of(folder, "bob")
    client = client_context(bob)
    client.check_hostname = False
    _shake_hands(server_context(broker), client)


@pytest.mark.parametrize(
    "words", [["--client", "../x"], ["--client", "ca"], ["--hosts", ","], ["--client", "broker-1"]]
)
def test_names_that_cannot_be_files(folder: Path, words: list[str]) -> None:
    with pytest.raises(CommandError):
        run("create", str(folder), *words)
    assert not folder.exists()


def test_a_certificate_is_shown(folder: Path) -> None:
    run("create", str(folder), "--days", "40")
    (shown,) = json.loads(run("show", str(folder / "broker-1.pem"), "--json"))
    assert shown["name"] == "CN=broker-1"
    assert shown["hosts"] == ["localhost", "127.0.0.1"]
    assert shown["days_left"] in (39, 40)
    assert "CN=broker-1" in run("show", str(folder / "broker-1.pem"))
    for wrong, said in (("ca.key", "has no certificate"), ("gone", "cannot be read")):
        with pytest.raises(CommandError, match=said):
            run("show", str(folder / wrong))
