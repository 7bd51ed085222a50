"""The section `listeners`: valid settings, and the error for each mistake."""

from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas import config
from barnabas.config.listener_settings import warnings
from barnabas.model.errors import ConfigError
from barnabas.model.security_settings import ListenerSettings
from barnabas.model.settings import Settings
from tests.support.security.certificates import Certificates, Files


class Folder(NamedTuple):
    """A settings file, and certificates that it may name."""

    path: Path
    certificates: Certificates
    files: Files

    def load(self, text: str, **flags: object) -> Settings:
        file = self.path / "barnabas.yaml"
        named = {"BROKER_PEM": self.files.certificate, "BROKER_KEY": self.files.key}
        for name, path in {**named, "CA_PEM": self.certificates.authority}.items():
            text = text.replace(name, path)
        file.write_text(text)
        return config.load(file, {}, {key.replace("__", "."): flags[key] for key in flags})

    def refusal(self, text: str, **flags: object) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(text, **flags)
        said = str(caught.value).replace(str(self.path / "barnabas.yaml"), "FILE")
        for name, path in zip(("BROKER_PEM", "BROKER_KEY"), self.files, strict=True):
            said = said.replace(path, name)
        return said.replace(self.certificates.authority, "CA_PEM")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("settings")
    certificates = Certificates(path / "certificates")
    return Folder(path, certificates, certificates.broker())


SECURE = "listeners:\n  SECURE:\n    listen: 127.0.0.1:9093\n    protocol: SSL\n"
USABLE = SECURE + "    certificate: BROKER_PEM\n    key: BROKER_KEY\n"


def test_without_the_section_there_is_one_listener(folder: Folder) -> None:
    settings = folder.load("broker:\n  host: 10.0.0.1\n  port: 9000\n  advertised_host: kafka\n")
    assert settings.listeners == ()
    assert settings.client_listeners == (
        ListenerSettings(name="PLAINTEXT", host="10.0.0.1", port=9000, advertised_host="kafka"),
    )


def test_all_keys_of_a_listener(folder: Folder) -> None:
    (listener,) = folder.load(
        "listeners:\n"
        "  EXTERNAL:\n"
        '    listen: "[::1]:9093"\n'
        "    advertised: kafka.example.com:19093\n"
        "    protocol: SASL_SSL\n"
        "    certificate: BROKER_PEM\n"
        "    key: BROKER_KEY\n"
        "    client_authentication: requested\n"
        "    authorities: CA_PEM\n"
        "    principal_mapping_rules: RULE:^CN=(.*?),.*$/$1/L, DEFAULT\n"
        "    mechanisms: [PLAIN, SCRAM-SHA-256]\n"
        "    max_connections: 100\n"
    ).listeners
    assert listener == ListenerSettings(
        name="EXTERNAL",
        host="::1",
        port=9093,
        advertised_host="kafka.example.com",
        advertised_port=19093,
        protocol="SASL_SSL",
        certificate=folder.files.certificate,
        key=folder.files.key,
        client_authentication="requested",
        authorities=folder.certificates.authority,
        principal_mapping_rules=("RULE:^CN=(.*?),.*$/$1/L", "DEFAULT"),
        mechanisms=("PLAIN", "SCRAM-SHA-256"),
        max_connections=100,
    )


def test_listeners_keep_their_order(folder: Folder) -> None:
    text = "listeners:\n  B:\n    listen: h:1\n  A:\n    listen: h:2\n    advertised: other\n"
    settings = folder.load(text)
    assert [(each.name, each.port) for each in settings.client_listeners] == [("B", 1), ("A", 2)]
    assert settings.listeners[1].advertised_host == "other"
    assert settings.listeners[1].advertised_port is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            SECURE,
            "FILE, line 2: listeners.SECURE.certificate is missing, and protocol SSL needs it; "
            "write the path of a PEM file, or make one with `barnabas cert create`.",
        ),
        (
            USABLE.replace("BROKER_KEY", "CA_PEM"),
            "FILE, line 6: listeners.SECURE.key cannot be used: CA_PEM has no private key in PEM, "
            "or its password is wrong.",
        ),
        (
            USABLE.replace("BROKER_KEY", "gone.key"),
            "FILE, line 6: listeners.SECURE.key is 'gone.key', and there is no such file; write "
            "the path of a file.",
        ),
        (
            USABLE + "    client_authentication: required\n",
            "FILE, line 2: listeners.SECURE.authorities is missing",
        ),
        (
            USABLE + "    authorities: CA_PEM\n",
            "FILE, line 7: listeners.SECURE.authorities has no effect with client_authentication "
            "none; set it to required.",
        ),
        (
            USABLE + "    client_authentication: required\n    authorities: BROKER_KEY\n",
            "FILE, line 8: listeners.SECURE.authorities cannot be used: BROKER_KEY has no "
            "certificates of authorities in PEM",
        ),
        (
            USABLE + "    client_authentication: maybe\n",
            "FILE, line 7: listeners.SECURE.client_authentication is 'maybe'; write one of "
            '"none", "requested", "required".',
        ),
        (
            USABLE + "    mechanisms: [PLAIN]\n",
            "FILE, line 7: listeners.SECURE.mechanisms has no effect with protocol SSL; remove it.",
        ),
        (
            USABLE.replace("SSL", "SASL_SSL") + "    mechanisms: []\n",
            "FILE, line 7: listeners.SECURE.mechanisms is empty; write some of SCRAM-SHA-512",
        ),
        (
            USABLE.replace("SSL", "SASL_SSL") + "    mechanisms: [GSSAPI]\n",
            "FILE, line 7: listeners.SECURE.mechanisms is ['GSSAPI']; 'GSSAPI' is not a mechanism; "
            "use SCRAM-SHA-512, SCRAM-SHA-256, PLAIN, OAUTHBEARER.",
        ),
        (
            USABLE + "    principal_mapping_rules: RULE:(/x/\n",
            "FILE, line 7: listeners.SECURE.principal_mapping_rules is 'RULE:(/x/'; '(' is not "
            "an expression of RE2: missing ): (.",
        ),
        (
            USABLE + "    key_password_file: BROKER_KEY\n    key_password_variable: X\n",
            "FILE, line 7: listeners.SECURE.key_password_file and key_password_variable are both "
            "set; remove one of the two.",
        ),
        (
            USABLE.replace("SSL", "PLAINTEXT"),
            "FILE, line 5: listeners.SECURE.certificate has no effect with protocol PLAINTEXT; "
            "set protocol to SSL, or remove it.",
        ),
        (
            "listeners:\n  A:\n    listen: h:1\n  B:\n    listen: h:1\n",
            "listeners.B.listen and listeners.A.listen are both h:1; give each listener its own "
            "port.",
        ),
        (
            "listeners:\n  A:\n    listen: 9093\n",
            "FILE, line 3: listeners.A.listen is '9093'; write HOST:PORT, such as 0.0.0.0:9093",
        ),
        (
            "listeners:\n  A:\n    listen: h:1\n    advertised: 0.0.0.0\n",
            "FILE, line 4: listeners.A.advertised is '0.0.0.0'; clients cannot connect to it; "
            "write the name of this machine.",
        ),
        ("listeners:\n  A: {}\n", "FILE, line 2: listeners.A.listen is missing; write HOST:PORT"),
        (
            "listeners:\n  A:\n    port: 1\n",
            "FILE, line 3: there is no key 'port' for a listener; the keys of a listener are",
        ),
        (
            "listeners:\n  PEER:\n    listen: h:1\n",
            "FILE, line 2: PEER is the listener for other brokers; choose another name.",
        ),
        (
            "listeners:\n  a b: {}\n",
            "FILE, line 2: 'a b' is not a listener name; write letters",
        ),
        ("listeners: 9092\n", "FILE, line 1: listeners is '9092'; write its keys below it."),
    ],
)
def test_mistakes(folder: Folder, text: str, said: str) -> None:
    refusal = folder.refusal(text)
    assert refusal.startswith(said), refusal


def test_all_mistakes_are_reported_at_once(folder: Folder) -> None:
    refusal = folder.refusal(SECURE + "  OTHER: {}\nbroker:\n  prot: 1\n")
    assert len(refusal.splitlines()) == 3


def test_a_flag_names_the_listener_whose_address_it_sets(folder: Folder) -> None:
    text = "listeners:\n  A:\n    listen: h:1\n  B:\n    listen: h:2\n"
    settings = folder.load(text, listeners__B__listen="127.0.0.1:0")
    assert [(each.host, each.port) for each in settings.listeners] == [("h", 1), ("127.0.0.1", 0)]
    unknown = folder.refusal(text, listeners__C__listen="127.0.0.1:0")
    assert "the file has no listener 'C'; it has A, B" in unknown
    nameless = folder.refusal(text, broker__host="127.0.0.1", broker__port="9092")
    assert "--listen A=HOST:PORT" in nameless


def test_passwords_without_encryption_are_a_warning(folder: Folder) -> None:
    text = "listeners:\n  A:\n    listen: h:1\n    protocol: SASL_PLAINTEXT\n    mechanisms: {}\n"
    (warning,) = warnings(folder.load(text.format("PLAIN")))  # no certificate, so no key
    assert "takes passwords or tokens without encryption" in warning
    assert list(warnings(folder.load(text.format("SCRAM-SHA-256")))) == []


def test_a_key_that_everybody_can_read_is_a_warning(folder: Folder) -> None:
    key = Path(folder.files.key)
    key.chmod(0o644)
    (warning,) = warnings(folder.load(USABLE))
    key.chmod(0o640)
    assert warning == f"every user of this machine can read the private key {key}; chmod 600 it"
    assert list(warnings(folder.load(USABLE))) == []


VOTERS = "cluster:\n  host: 0.0.0.0\n  voters: [1@10.0.0.1:9192]\n"


@pytest.mark.parametrize("clients", ["", USABLE, "security:\n  authorizer: acl\n"])
def test_the_port_for_brokers_needs_tls_beyond_loopback(folder: Folder, clients: str) -> None:
    """Whether clients use TLS, log in, or neither."""
    refusal = folder.refusal(VOTERS + clients)
    assert "set cluster.tls_certificate" in refusal
    assert "--allow-plaintext-peers" in refusal
    allowed = folder.load(VOTERS + "  allow_plaintext_peers: true\n" + clients)
    assert [each for each in warnings(allowed) if "other brokers connect" in each]
    tls = "  tls_certificate: BROKER_PEM\n  tls_key: BROKER_KEY\n  tls_authorities: CA_PEM\n"
    assert list(warnings(folder.load(VOTERS + tls + clients))) == []
    local = VOTERS.replace("0.0.0.0", "127.0.0.1").replace("10.0.0.1", "127.0.0.1")
    assert list(warnings(folder.load(local + clients))) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("  tls_certificate: BROKER_PEM\n", "belong together"),
        ("  tls_certificate: gone\n  tls_authorities: CA_PEM\n", "there is no file 'gone'"),
        (
            "  tls_certificate: BROKER_PEM\n  tls_key: CA_PEM\n  tls_authorities: CA_PEM\n",
            "cluster.tls_certificate cannot be used: CA_PEM has no private key",
        ),
    ],
)
def test_mistakes_with_certificates_of_brokers(folder: Folder, keys: str, said: str) -> None:
    assert said in folder.refusal(VOTERS + keys)
