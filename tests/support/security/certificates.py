"""Certificates of an authority that a test makes, in files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import trustme


class Files(NamedTuple):
    """A certificate and its key."""

    certificate: str
    key: str


class Certificates:
    """One authority; its certificates are for localhost unless a test says otherwise."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._authority = trustme.CA()
        self.authority = str(folder / "ca.pem")
        self._authority.cert_pem.write_to_path(self.authority)

    def broker(
        self, name: str = "broker", *, hosts: tuple[str, ...] = (), valid_s: float | None = None
    ) -> Files:
        """Make the certificate of a broker, or replace its files."""
        until = None if valid_s is None else datetime.now(UTC) + timedelta(seconds=valid_s)
        names = hosts or ("localhost", "127.0.0.1")
        return self._write(name, self._authority.issue_cert(*names, not_after=until))

    def client(self, name: str, *, valid_s: float = 3600) -> Files:
        """Make the certificate of a client, valid for `valid_s` seconds."""
        until = datetime.now(UTC) + timedelta(seconds=valid_s)
        made = self._authority.issue_cert(f"{name}@example.org", common_name=name, not_after=until)
        return self._write(name, made)

    def expired(self, name: str = "expired") -> Files:
        """Make a certificate of a broker that has expired."""
        until = datetime.now(UTC) - timedelta(days=1)
        made = self._authority.issue_cert("localhost", "127.0.0.1", not_after=until)
        return self._write(name, made)

    def _write(self, name: str, made: trustme.LeafCert) -> Files:
        files = Files(str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key"))
        made.private_key_pem.write_to_path(files.key)
        Path(files.key).chmod(0o600)
        content = b"".join(each.bytes() for each in made.cert_chain_pems)
        Path(files.certificate).write_bytes(content)
        return files


def local_and_secure(files: Files, authorities: str | None = None) -> str:
    """Return the YAML of two listeners: LOCAL, and SECURE with TLS.

    With `authorities`, clients of SECURE need a certificate.
    """
    clients = f"    authorities: {authorities}\n    client_authentication: required\n"
    return (
        "listeners:\n"
        "  LOCAL:\n    listen: 127.0.0.1:0\n"
        "  SECURE:\n    listen: 127.0.0.1:0\n    protocol: SSL\n"
        f"    certificate: {files.certificate}\n    key: {files.key}\n"
        f"{clients if authorities else ''}"
    )


def secure(
    certificates: Certificates, files: Files, *, name: str = "SECURE", clients: str = "none"
) -> dict[str, object]:
    """Return the settings of a listener with TLS."""
    settings: dict[str, object] = {
        f"listeners.{name}.listen": "127.0.0.1:0",
        f"listeners.{name}.protocol": "SSL",
        f"listeners.{name}.certificate": files.certificate,
        f"listeners.{name}.key": files.key,
    }
    if clients != "none":
        settings |= {
            f"listeners.{name}.client_authentication": clients,
            f"listeners.{name}.authorities": certificates.authority,
        }
    return settings
