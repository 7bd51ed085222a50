"""Files of client properties, with librdkafka's names and Java's."""

from pathlib import Path

import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.client_files import read_client_file

SECRET = "planted-secret"


def read(folder: Path, text: str) -> dict[str, str]:
    file = folder / "client.properties"
    file.write_text(text)
    return read_client_file(file)


def test_librdkafka_names_are_kept(tmp_path: Path) -> None:
    text = """
    # a comment
    ! another one
    security.protocol = SASL_SSL
    sasl.username=alice
    sasl.password = a=b c#d

    ssl.ca.location: /etc/ca.pem
    """
    assert read(tmp_path, text) == {
        "security.protocol": "SASL_SSL",
        "sasl.username": "alice",
        "sasl.password": "a=b c#d",
        "ssl.ca.location": "/etc/ca.pem",
    }


def test_java_names_are_translated(tmp_path: Path) -> None:
    text = """
    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
        username="alice" \\
        password="a\\"b;c";
    ssl.truststore.location=/etc/ca.pem
    ssl.truststore.type=PEM
    ssl.truststore.password=ignored
    ssl.keystore.location=/etc/client.pem
    ssl.keystore.type=pem
    ssl.keystore.password=of-the-key
    ssl.endpoint.identification.algorithm=
    """
    assert read(tmp_path, text) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": 'a"b;c',
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.certificate.location": "/etc/client.pem",
        "ssl.key.location": "/etc/client.pem",
        "ssl.key.password": "of-the-key",
        "ssl.endpoint.identification.algorithm": "none",
    }


@pytest.mark.parametrize("quoted", ["'alices'", '"alices"', "alices"])
def test_quotes_of_a_login(tmp_path: Path, quoted: str) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    text = f"sasl.jaas.config={module} required username=alice password={quoted};"
    assert read(tmp_path, text) == {"sasl.username": "alice", "sasl.password": "alices"}


@pytest.mark.parametrize(("given", "is_token"), [('"true"', True), ("false", False)])
def test_a_login_with_a_delegation_token(tmp_path: Path, given: str, *, is_token: bool) -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    text = f"sasl.jaas.config={module} required username=id password=hmac tokenauth={given};"
    found = read(tmp_path, text)
    assert found.pop("sasl.tokenauth", None) == ("true" if is_token else None)
    assert found == {"sasl.username": "id", "sasl.password": "hmac"}


@pytest.mark.parametrize(
    "text",
    [
        f"sasl.password\n={SECRET}",
        f"={SECRET}",
        f"sasl.jaas.config={SECRET}",
        f'sasl.jaas.config=a.Krb5LoginModule required username="a" password="{SECRET}";',
        f'sasl.jaas.config=a.PlainLoginModule required password="{SECRET}";',
        f"ssl.truststore.password={SECRET}\nssl.truststore.type=JKS",
    ],
)
def test_errors_never_show_a_value(tmp_path: Path, text: str) -> None:
    with pytest.raises(AdminError) as raised:
        read(tmp_path, text)
    assert SECRET not in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(AdminError, match="No such file"):
        read_client_file(tmp_path / "none")
    file = tmp_path / "latin"
    file.write_bytes(b"sasl.password=\xff")
    with pytest.raises(AdminError, match="not UTF-8"):
        read_client_file(file)


def test_a_line_that_goes_on_at_the_end_of_the_file(tmp_path: Path) -> None:
    assert read(tmp_path, "a=b\\") == {"a": "b"}
    assert read(tmp_path, "a=b\\\\") == {"a": "b\\\\"}
