"""No secret is printed: passwords and tokens are planted, and everything that is written is read.

What is written is the log at its most talkative, tracebacks, answers about configs, what commands
print, and the files of the broker.
"""

import contextlib
import json
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from barnabas import logs
from barnabas.admin import token_admin
from barnabas.model.security_settings import SecuritySettings
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from barnabas.protocol.messages.describe_delegation_token import DescribedDelegationToken
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.security.plain import Remembered
from barnabas.server.secret_files import read_secret
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.wire_failures import LinkError
from tests.support.security.certificates import Certificates
from tests.support.security.sasl_broker import ADMIN, MECHANISMS, SaslBroker, properties
from tests.support.security.token_clients import (
    add_user,
    as_user,
    token_properties,
    token_security,
)
from tests.support.security.tokens import AUDIENCE, ISSUER, Issuer

RIGHT, WRONG = "planted-right-password", "planted-wrong-password"
PLANTED = "planted-"


@pytest.fixture
def written() -> Iterator[StringIO]:
    stream = StringIO()
    logs.configure(json=False, level="debug", stream=stream)
    yield stream
    logging.getLogger().removeHandler(logs._forward)


def log_in(broker: SaslBroker, **given: object) -> None:
    with contextlib.suppress(LinkError), Wire({**properties(broker.bootstrap), **given}) as wire:
        wire.metadata()


def test_the_broker(tmp_path: Path, written: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer()
    keys = tmp_path / "keys.json"
    keys.write_text(issuer.published())
    security = SecuritySettings(oauth_keys=str(keys), oauth_issuer=ISSUER, oauth_audience=AUDIENCE)
    tokens = [issuer.token("alice"), Issuer().token("alice")]
    data = tmp_path / "data"
    mechanisms = (*MECHANISMS, "OAUTHBEARER")
    with SaslBroker(data, mechanisms=mechanisms, security=security, password=RIGHT) as broker:
        for mechanism in MECHANISMS:
            for password in (RIGHT, WRONG):
                named = {"sasl.mechanism": mechanism, "sasl.password": password}
                log_in(broker, **named)
        for token in tokens:
            named = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token": token}
            log_in(broker, **named)
        with monkeypatch.context() as patched:  # a defect, so that a traceback is written
            patched.setattr(Remembered, "has", int)
            named = {"sasl.mechanism": "PLAIN", "sasl.password": RIGHT}
            log_in(broker, **named)
        admin = AdminClient(properties(broker.bootstrap, password=RIGHT))
        resource = ConfigResource(ResourceType.BROKER, "1")
        with contextlib.suppress(KafkaException):
            for future in admin.describe_configs([resource]).values():
                written.write(str(future.result(30)))
    text = written.getvalue()
    assert "Traceback" in text
    assert "a client has authenticated" in text
    assert "did not authenticate" in text
    assert PLANTED not in text
    assert not [token for token in tokens if token.rpartition(".")[2] in text]
    for path in data.rglob("*"):
        assert path.is_dir() or PLANTED.encode() not in path.read_bytes()
    mode = stat.S_IMODE((data / "__cluster_metadata").stat().st_mode)
    assert mode == 0o700


def test_messages_do_not_show_secrets() -> None:
    shown = repr(
        [
            SaslAuthenticateRequest(auth_bytes=RIGHT.encode()),
            AlterUserScramCredentialsRequest(
                upsertions=[ScramCredentialUpsertion(name="a", salted_password=RIGHT.encode())]
            ),
        ]
    )
    assert (PLANTED in shown, "auth_bytes=" in shown) == (False, True)


def serve(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "barnabas.cli", "serve", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=False,
    )


def test_the_example_of_a_configuration() -> None:
    done = serve("--print-config", BARNABAS_BOOTSTRAP_ADMIN_PASSWORD=RIGHT)
    assert (done.returncode, PLANTED in done.stdout + done.stderr) == (0, False)


@pytest.mark.parametrize("key", ["key_password_file", "key_password_variable", "key_password"])
def test_a_password_in_the_place_of_its_file_or_variable(tmp_path: Path, key: str) -> None:
    files = Certificates(tmp_path / "certificates").broker()
    config = tmp_path / "barnabas.yaml"
    config.write_text(
        "listeners:\n  SECURE:\n    listen: 127.0.0.1:0\n    protocol: SSL\n"
        f"    certificate: {files.certificate}\n    key: {files.key}\n    {key}: {RIGHT}\n"
    )
    done = serve("--config", str(config), "--data", str(tmp_path / "data"))
    assert (done.returncode, "key_password" in done.stderr or "variable" in done.stderr) == (
        2,
        True,
    )
    assert PLANTED not in done.stderr + done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("--bootstrap-admin", "admin"),
        ("--bootstrap-admin", "", "--bootstrap-admin-password-file", "FILE"),
        ("--bootstrap-admin-password-file", "FILE"),
        ("--bootstrap-admin", "admin", "--bootstrap-admin-password-file", "/none"),
    ],
)
def test_mistakes_in_naming_the_first_admin(tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "password"
    file.write_text(RIGHT)
    named = [str(file) if word == "FILE" else word for word in words]
    done = serve("--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"), *named)
    assert (done.returncode, "--bootstrap-admin" in done.stderr) == (2, True)
    assert PLANTED not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("source", ["file", "variable"])
def test_serve_creates_the_first_admin(tmp_path: Path, source: str) -> None:
    """The password is neither in the log nor among the arguments of the process."""
    file = tmp_path / "password"
    file.write_text(RIGHT + "\n")
    variables = {"BARNABAS_BOOTSTRAP_ADMIN_PASSWORD": RIGHT} if source == "variable" else {}
    words = ["--bootstrap-admin-password-file", str(file)] if source == "file" else []
    named = [
        "--listen",
        "127.0.0.1:0",
        "--data",
        str(tmp_path / "data"),
        "--bootstrap-admin",
        ADMIN,
    ]
    named += ["--json", "--log-level", "debug"]
    with subprocess.Popen(
        [sys.executable, "-m", "barnabas.cli", "serve", *named, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        admin = AdminClient({"bootstrap.servers": ready["listen"]})
        users = admin.describe_user_scram_credentials(None).result(30)
        process.terminate()
        out, err = process.communicate(timeout=30)
    assert set(users) == {ADMIN}
    assert len(users[ADMIN].scram_credential_infos) == 2
    assert "created the first admin" in err
    assert PLANTED not in out + err


def test_the_first_admin_is_not_made_again(tmp_path: Path) -> None:
    """A restart of a broker with another password does not change the admin's."""
    with SaslBroker(tmp_path):
        pass
    with SaslBroker(tmp_path, password=WRONG) as broker:
        with Wire(properties(broker.bootstrap)) as wire:
            assert wire.metadata().brokers
        with Wire(properties(broker.bootstrap, password=WRONG)) as wire, pytest.raises(LinkError):
            wire.metadata()


def test_delegation_tokens(tmp_path: Path, written: StringIO) -> None:
    """Neither their secret nor an HMAC is written anywhere, except to those who asked for it."""
    audit = tmp_path / "audit.log"
    security = token_security(tmp_path, audit_file=str(audit))
    data = tmp_path / "data"
    with SaslBroker(data, security=security) as broker:
        add_user(broker.bootstrap, "alice")
        with as_user(broker.bootstrap, "alice") as wire:
            token = token_admin.create(wire, None, ["User:bob"])
            token_admin.renew(wire, token.token_id)
            written.write(str(token_admin.tokens(wire)) + repr(token))
        for password in (token.password, WRONG):
            named = {**token_properties(broker.bootstrap, token), "sasl.password": password}
            log_in(broker, **named)
        with as_user(broker.bootstrap, "alice") as wire:
            token_admin.expire(wire, token.token_id)
        admin = AdminClient(properties(broker.bootstrap))
        resource = ConfigResource(ResourceType.BROKER, "1")
        for future in admin.describe_configs([resource]).values():
            found = future.result(30)
            written.write(str(found))
    shown = {found[name].value for name in found if name.startswith("delegation.token.")}
    assert shown == {"604800000", "86400000", "3600000"}
    text = written.getvalue() + audit.read_text()
    assert ("delegation token removed" in text, token.token_id in text) == (True, True)
    assert "the HMAC is not that of the delegation token" in text
    planted = [PLANTED, token.password, token.hmac.hex(), repr(token.hmac)[2:-1]]
    assert not [each for each in planted if each in text]
    stored = b"".join(path.read_bytes() for path in data.rglob("*") if path.is_file())
    raw = [PLANTED.encode(), token.hmac, token.password.encode(), token.hmac.hex().encode()]
    assert (token.token_id.encode() in stored, any(each in stored for each in raw)) == (True, False)


def test_messages_about_tokens_do_not_show_hmacs() -> None:
    hmac = RIGHT.encode()
    messages = [
        CreateDelegationTokenResponse(hmac=hmac),
        RenewDelegationTokenRequest(hmac=hmac),
        ExpireDelegationTokenRequest(hmac=hmac),
        DescribedDelegationToken(hmac=hmac),
    ]
    assert [PLANTED in repr(message) for message in messages] == [False] * len(messages)


def test_the_secret_of_delegation_tokens_is_not_printed(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("planted")
    words = ["--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")]
    done = serve(*words, BARNABAS_SECURITY_DELEGATION_TOKEN_SECRET_FILE=str(file))
    assert (done.returncode, "16 bytes" in done.stderr) == (2, True), done.stderr
    assert "planted" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"FILE": "/none"}, "/none, which has a secret: No such file"),
        ({"VARIABLE": "NO_SUCH_VARIABLE"}, "NO_SUCH_VARIABLE, which has a secret, is not set"),
        ({"FILE": "/none", "VARIABLE": "NO_SUCH_VARIABLE"}, "are both set"),
    ],
)
def test_mistakes_in_naming_the_secret(
    tmp_path: Path, variables: dict[str, str], said: str
) -> None:
    named = {f"BARNABAS_SECURITY_DELEGATION_TOKEN_SECRET_{k}": v for k, v in variables.items()}
    done = serve("--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"), **named)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_secret_in_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_SECRET", RIGHT)
    settings = SecuritySettings(delegation_token_secret_variable="TOKEN_SECRET")
    assert settings.delegation_token_secret is not None
    assert read_secret(settings.delegation_token_secret) == RIGHT
