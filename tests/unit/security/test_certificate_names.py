"""Names of certificates as Java prints them; each expected name is what Java 17 printed."""

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from barnabas.security.certificate_names import CertificateError, read_certificate

Attribute = x509.NameAttribute
KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(*parts: list[Attribute[str]], until: datetime | None = None) -> bytes:
    name = x509.Name([x509.RelativeDistinguishedName(part) for part in parts])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(5)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(until or datetime(2049, 1, 1, tzinfo=UTC))
    )
    return made.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (
            [
                [Attribute(NameOID.COUNTRY_NAME, "US")],
                [Attribute(NameOID.ORGANIZATION_NAME, "Acme, Inc.")],
                [Attribute(NameOID.COMMON_NAME, "alice,OU=admin")],
            ],
            r"CN=alice\,OU\=admin,O=Acme\, Inc.,C=US",
        ),
        (
            [
                [Attribute(NameOID.ORGANIZATIONAL_UNIT_NAME, " lead")],
                [Attribute(NameOID.COMMON_NAME, 'q"<>#;+\\ \u00fc ')],
            ],
            'CN=q\\"\\<\\>\\#\\;\\+\\\\ \u00fc\\ ,OU=\\ lead',
        ),
        (
            [
                [Attribute(NameOID.EMAIL_ADDRESS, "a@b.c")],
                [Attribute(NameOID.SERIAL_NUMBER, "77")],
                [Attribute(NameOID.COMMON_NAME, "x"), Attribute(NameOID.USER_ID, "u")],
            ],
            "CN=x+UID=u,2.5.4.5=#13023737,1.2.840.113549.1.9.1=#16056140622e63",
        ),
        (
            [
                [Attribute(NameOID.DOMAIN_COMPONENT, "org")],
                [Attribute(NameOID.DOMAIN_COMPONENT, "acme")],
                [Attribute(NameOID.STATE_OR_PROVINCE_NAME, "Bay")],
                [Attribute(NameOID.LOCALITY_NAME, "L")],
                [Attribute(NameOID.STREET_ADDRESS, "s 1")],
                [Attribute(NameOID.COMMON_NAME, "#hash")],
            ],
            r"CN=\#hash,STREET=s 1,L=L,ST=Bay,DC=acme,DC=org",
        ),
        ([[Attribute(NameOID.COMMON_NAME, "  a  b \n")]], "CN=\\ \\ a  b \n"),
        ([], ""),
    ],
)
def test_names_are_those_of_java(parts: list[list[Attribute[str]]], name: str) -> None:
    assert read_certificate(certificate(*parts)).subject == name


@pytest.mark.parametrize("year", [2030, 2049, 2050, 2130])
def test_the_end_of_the_validity(year: int) -> None:
    until = datetime(year, 2, 3, 4, 5, 6, tzinfo=UTC)
    found = read_certificate(certificate(until=until))
    assert found.not_after_ms == int(until.timestamp()) * 1000


def test_what_is_no_certificate_is_refused() -> None:
    whole = certificate([Attribute(NameOID.COMMON_NAME, "x")])
    for length in range(0, len(whole), 7):
        with pytest.raises(CertificateError):
            read_certificate(whole[:length])
