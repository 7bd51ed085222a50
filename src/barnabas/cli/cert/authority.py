"""A certificate authority in a directory, for test clusters: ECDSA keys on P-256.

    DIR/ca.pem, ca.key                   the authority
    DIR/broker-1.pem, broker-1.key, ...  one certificate for each broker, with its host names
    DIR/alice.pem, alice.key             the certificate of a client

Certificates of brokers are for servers and for clients, since brokers connect to each other. Those
of clients are for clients only, and name no host, so that they are not accepted on the port for
brokers. Only their owner can read keys, and no file is overwritten.
"""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from barnabas.cli.common.failure import CommandError

AUTHORITY_DAYS = 3650
EARLIER = timedelta(hours=1)
"""Certificates are valid from a little earlier on, since clocks differ."""


class Authority:
    """A certificate authority in a directory, with the certificates that it has signed."""

    def __init__(self, folder: Path, days: int) -> None:
        """Load the authority of a directory, or make one."""
        self.folder = folder
        self._days = days
        self._now = datetime.now(UTC)
        if (folder / "ca.pem").exists():
            self._load()
        else:
            self._make()

    def _load(self) -> None:
        try:
            self._certificate = x509.load_pem_x509_certificate(
                (self.folder / "ca.pem").read_bytes()
            )
            key = load_pem_private_key((self.folder / "ca.key").read_bytes(), None)
        except (OSError, ValueError) as error:
            raise CommandError(
                f"the authority in {self.folder} cannot be used: {error}; choose another directory"
            ) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise CommandError(f"{self.folder}/ca.key was not made by this command")
        self._key = key

    def _make(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Barnabas test authority")])
        self._certificate = (
            self._builder(name, name, self._key.public_key(), AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self._store("ca", self._certificate, self._key)

    def sign_broker(self, name: str, hosts: Sequence[str]) -> Path:
        """Make a certificate for a broker; return its file."""
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._sign(name, hosts, both)

    def sign_client(self, name: str) -> Path:
        """Make a certificate for a client; return its file."""
        return self._sign(name, (), [ExtendedKeyUsageOID.CLIENT_AUTH])

    def _sign(
        self, name: str, hosts: Sequence[str], purposes: Iterable[x509.ObjectIdentifier]
    ) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = self._certificate.subject
        signer = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = (
            self._builder(subject, issuer, key.public_key(), self._days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(signer),
                critical=False,
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(each) for each in hosts])
            builder = builder.add_extension(names, critical=False)
        return self._store(name, builder.sign(self._key, hashes.SHA256()), key)

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - EARLIER)
            .not_valid_after(self._now + timedelta(days=days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )

    def _store(
        self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> Path:
        path = self.folder / f"{name}.pem"
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_new(self.folder / f"{name}.key", secret, 0o600)
        write_new(path, certificate.public_bytes(Encoding.PEM), 0o644)
        return path


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that does not exist yet, with its permissions from the start."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise CommandError(f"{path} exists; remove it, or choose another directory") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
