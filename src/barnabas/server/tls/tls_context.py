"""TLS contexts: made from files, tested, and replaced when the files change.

A context is never changed while connections use it: a wrong key would break all of them. A reload
makes another context, tests it with a handshake in memory, and only then replaces the old one. Open
connections keep theirs. If files are missing, invalid or expired, the old context stays, and the
log says so.

TLS 1.2 and 1.3 with authenticated encryption only; no renegotiation, no compression, and no session
tickets: they save little, and allow a client to skip the check of its certificate
(CVE-2025-23419).
"""

import contextlib
import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from barnabas.logs import get
from barnabas.model.errors import BrokerError
from barnabas.model.security_settings import TlsFiles

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""The ciphers for TLS 1.2. All ciphers of TLS 1.3 have authenticated encryption."""
VERIFY_MODES = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
DAY_S = 24 * 3600
WARN_DAYS = 30
HANDSHAKE_STEPS_MAX = 20
SELF = "itself.invalid"

log = get("barnabas.server")


class TlsFilesError(BrokerError):
    """The files of a listener cannot be used; the message says which, and what to change."""


class Stamp(NamedTuple):
    """Identifies a version of a file. Links are followed, so a replaced target counts as well."""

    inode: int
    size: int
    modified_ns: int


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a context for accepted connections; raise `TlsFilesError` for unusable files."""
    context = _strict(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
    _load_certificate(context, files)
    if files.client_authentication != "none":
        _load_authorities(context, files)
        context.verify_mode = VERIFY_MODES[files.client_authentication]
    return context


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a context for connections to other brokers, which verifies their names."""
    context = _strict(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    _load_certificate(context, files)
    _load_authorities(context, files)
    return context


def check(files: TlsFiles) -> float:
    """Test the files; return when the certificate expires, in seconds since 1970.

    A server with the certificate and a client that trusts it do a handshake in memory. This proves
    that the key fits, the dates are valid, the certificate is for servers, and OpenSSL accepts its
    strength.
    """
    server = _strict(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    _load_certificate(server, files)
    client = _strict(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    with _says(files.certificate, "is no certificate in PEM"):
        client.load_verify_locations(cadata=_first_certificate(files.certificate))
    with _says(files.certificate, "is not usable"):
        seen = _shake_hands(server, client)
    return ssl.cert_time_to_seconds(str(seen["notAfter"]))


def check_between_brokers(files: TlsFiles) -> None:
    """Test that two brokers with these files verify each other, apart from their names."""
    client = client_context(files)
    client.check_hostname = False
    with _says(files.certificate, f"is not accepted with the authorities in {files.authorities}"):
        _shake_hands(server_context(files), client)


def check_all(files: TlsFiles) -> float:
    """Test the files as `check` does, and the authorities if there are any, even unused ones."""
    expires_s = check(files)
    if files.authorities is not None:
        _load_authorities(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), files)
    return expires_s


class TlsContexts:
    """The contexts of one listener, or of the connections to other brokers."""

    def __init__(self, files: TlsFiles, *, connects: bool = False) -> None:
        """Make the contexts; raise `TlsFilesError` for unusable files."""
        self.files = files
        self._connects = connects
        self._stamps = _stamps(files)
        self._expires_s = check(files)
        if connects:
            check_between_brokers(files)
        self.accepting = server_context(files)
        """The context for accepted connections."""
        self.connecting = client_context(files) if connects else None
        """The context for connections to other brokers."""
        self._warned_on_day = -1

    def reload_if_changed(self) -> None:
        """Reload the files if one was replaced since the last look."""
        try:
            stamps = _stamps(self.files)
        except TlsFilesError:
            stamps = ()
        if stamps != self._stamps:
            self._stamps = stamps
            self.reload()

    def use(self, files: TlsFiles) -> None:
        """Use other files, or reload the same ones; keep the old contexts if they are unusable."""
        before, self.files = self.files, files
        if self.reload():
            with contextlib.suppress(TlsFilesError):
                self._stamps = _stamps(files)
        else:
            self.files = before

    def reload(self) -> bool:
        """Replace the contexts; if the files are unusable, keep them and return False."""
        try:
            expires_s = check(self.files)
            if self._connects:
                check_between_brokers(self.files)
            accepting = server_context(self.files)
            connecting = client_context(self.files) if self._connects else None
        except TlsFilesError as error:
            event = "kept the old certificate: the new files cannot be used"
            log.error(event, files_of=self.files.label, problem=str(error))  # noqa: TRY400
            return False
        self.accepting, self.connecting, self._expires_s = accepting, connecting, expires_s
        self._warned_on_day = -1
        until = datetime.fromtimestamp(expires_s, UTC).isoformat()
        log.info("loaded a certificate", files_of=self.files.label, valid_until=until)
        return True

    def warn_before_expiry(self, now_s: float) -> None:
        """Log how long the certificate is valid, once a day in its last days."""
        today = int(now_s // DAY_S)
        days_left = int((self._expires_s - now_s) // DAY_S)
        if days_left >= WARN_DAYS or today == self._warned_on_day:
            return
        self._warned_on_day = today
        facts = {"files_of": self.files.label, "certificate": self.files.certificate}
        if self._expires_s <= now_s:
            log.error("a certificate has expired; replace its file", **facts)
        else:
            log.warning("a certificate expires soon; replace its file", days=days_left, **facts)


def _strict(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


class _says:  # noqa: N801 - reads as a function
    """Turns errors of OpenSSL and of the file system into `TlsFilesError`."""

    def __init__(self, path: str, problem: str) -> None:
        self._path = path
        self._problem = problem

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ssl.SSLCertVerificationError):
            text = f"{self._path} {self._problem}: {error.verify_message}"
        elif isinstance(error, ssl.SSLError):
            text = f"{self._path} {self._problem} ({error.reason or error})"
        elif isinstance(error, OSError):
            text = f"{self._path} cannot be read: {error.strerror or error}"
        elif isinstance(error, ValueError):  # not ASCII, or empty
            text = f"{self._path} {self._problem}"
        else:
            return
        raise TlsFilesError(text) from error


def _load_certificate(context: ssl.SSLContext, files: TlsFiles) -> None:
    password = _password(files)
    for path in (files.certificate, files.key):
        with _says(path, "is not text"):
            Path(path).read_text(encoding="ascii")
    try:
        # A callback, since OpenSSL would ask at the terminal if it got no password.
        context.load_cert_chain(files.certificate, files.key, password=lambda: password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            problem = f"{files.key} is not the key of the certificate {files.certificate}"
        elif "CERTIFICATE" not in Path(files.certificate).read_text(encoding="ascii"):
            problem = f"{files.certificate} has no certificate in PEM"
        else:
            problem = f"{files.key} has no private key in PEM, or its password is wrong"
        raise TlsFilesError(problem) from error
    except OSError as error:  # not text, but not empty either
        raise TlsFilesError(f"{files.key} cannot be used: {error}") from error


def _load_authorities(context: ssl.SSLContext, files: TlsFiles) -> None:
    assert files.authorities is not None, "the configuration requires it"
    with _says(files.authorities, "has no certificates of authorities in PEM"):
        text = Path(files.authorities).read_text(encoding="ascii")
        context.load_verify_locations(cadata=text)
    if not context.get_ca_certs():
        problem = f"{files.authorities} has no certificate of an authority (CA:TRUE)"
        raise TlsFilesError(problem)


def _password(files: TlsFiles) -> str:
    if files.password is None:
        return ""
    kind, where = files.password
    if kind == "variable":
        if where not in os.environ:
            # An unusual name may be the password itself, by mistake.
            name = f" {where}" if where.isidentifier() and where.isupper() else ""
            problem = f"the environment variable{name} with the password of {files.key} is unset"
            raise TlsFilesError(problem)
        return os.environ[where]
    with _says(where, "is not text"):
        return Path(where).read_text(encoding="utf-8").rstrip("\r\n")
    raise AssertionError


def _first_certificate(path: str) -> str:
    """Return the broker's own certificate, which those of authorities follow."""
    end = "-----END CERTIFICATE-----"
    return Path(path).read_text(encoding="ascii").partition(end)[0] + end + "\n"


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> dict[str, object]:
    """Do a handshake between a server and a client in memory; return what the client saw."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=SELF),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    for _ in range(HANDSHAKE_STEPS_MAX):
        for end in list(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
        if not waiting:
            break
    seen = ends[0].getpeercert()
    assert seen is not None
    return dict(seen)


def _stamps(files: TlsFiles) -> tuple[Stamp, ...]:
    found = []
    for path in files.paths:
        with _says(path, ""):
            status = Path(path).stat()
            found.append(Stamp(status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
