"""Sends one HTTP GET request under a single deadline for connecting, TLS, headers and body.

A socket's own timeout restarts with every byte, so a server that sends slowly would block a reader
forever. Here every read gets the rest of the whole deadline.

An answer is complete or it is an error: a body that is shorter than its Content-Length, or chunks
that end early, are refused. Redirects are not followed, and proxies not used: exporters have none.
"""

import io
import socket
import ssl
import time
from functools import lru_cache
from http.client import HTTPException, HTTPResponse, IncompleteRead
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from barnabas.telemetry.collect.targets import Access, AccessError

PIECE_BYTES = 1 << 16
CONTEXTS_KEPT = 256
PORTS = {"http": 80, "https": 443}


class FetchError(Exception):
    """There is no complete answer; the text is the reason."""


class StatusError(FetchError):
    """The server answered with another status than 200."""

    def __init__(self, status: int, reason: str) -> None:
        """Take the status line."""
        super().__init__(f"answered {status} {reason}".rstrip())
        self.status = status


def get(url: str, access: Access, *, timeout_s: float, bytes_max: int) -> bytes:
    """Return the body of an answer with status 200; raises `FetchError`."""
    deadline_s = time.monotonic() + timeout_s
    parts = urlsplit(url)
    try:
        request = _request(parts, access)
        with _connect(parts, access, deadline_s) as wire:
            wire.sendall(request)
            return _body(wire, deadline_s, bytes_max)
    except TimeoutError:
        raise FetchError(f"no complete response within {timeout_s:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise FetchError(f"its certificate is not trusted: {error.verify_message}") from error
    except IncompleteRead as error:
        raise FetchError(
            f"the response was cut short after {len(error.partial):,} bytes"
        ) from error
    except AccessError as error:
        raise FetchError(str(error)) from error
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise FetchError(str(reason)) from error


def _request(parts: SplitResult, access: Access) -> bytes:
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {parts.netloc}",
        "User-Agent: barnabas",
        "Accept: */*",
        "Accept-Encoding: identity",
        "Connection: close",
    ]
    header = access.header()
    if header:
        if not header.isprintable():
            raise FetchError(
                "the user, password or token holds characters that an HTTP header cannot"
            )
        lines.append(f"Authorization: {header}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _connect(parts: SplitResult, access: Access, deadline_s: float) -> socket.socket:
    port = parts.port or PORTS[parts.scheme]
    plain = socket.create_connection((parts.hostname or "", port), _left_s(deadline_s))
    if parts.scheme == "http":
        return plain
    try:
        context = _context(access, _stamps(access))
        plain.settimeout(_left_s(deadline_s))
        return context.wrap_socket(plain, server_hostname=access.server_name or parts.hostname)
    except BaseException:
        plain.close()
        raise


def _body(wire: socket.socket, deadline_s: float, bytes_max: int) -> bytes:
    answer = HTTPResponse(_Readable(wire, deadline_s))  # type: ignore[arg-type]
    try:
        answer.begin()
        if answer.status != 200:
            raise StatusError(answer.status, answer.reason)
        declared = answer.length
        pieces, size = [], 0
        while piece := answer.read(PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > bytes_max:
                raise FetchError(f"the response is larger than {bytes_max:,} bytes")
        if answer.length:
            raise FetchError(f"the response was cut short: {size:,} of {declared:,} bytes came")
        return b"".join(pieces)
    finally:
        answer.close()


class _Readable:
    """The interface of a socket for `HTTPResponse`."""

    def __init__(self, wire: socket.socket, deadline_s: float) -> None:
        self._wire = wire
        self._deadline_s = deadline_s

    def makefile(self, _: str) -> io.BufferedReader:
        """Return the stream of bytes that the server sends."""
        return io.BufferedReader(_Stream(self._wire, self._deadline_s), PIECE_BYTES)


class _Stream(io.RawIOBase):
    """Reads from a socket until a deadline."""

    def __init__(self, wire: socket.socket, deadline_s: float) -> None:
        super().__init__()
        self._wire = wire
        self._deadline_s = deadline_s

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read the available bytes, within the rest of the deadline."""
        self._wire.settimeout(_left_s(self._deadline_s))
        return self._wire.recv_into(buffer)


def _left_s(deadline_s: float) -> float:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _stamps(access: Access) -> tuple[int, ...]:
    """Return when the certificate files were last changed: they may be replaced at any time."""
    names = [name for name in (access.ca_file, access.cert_file, access.key_file) if name]
    try:
        return tuple(Path(name).stat().st_mtime_ns for name in names)
    except OSError as error:
        raise AccessError(f"cannot read {error.filename} ({error.strerror})") from error


@lru_cache(maxsize=CONTEXTS_KEPT)
def _context(access: Access, _: tuple[int, ...]) -> ssl.SSLContext:
    """Return TLS settings; reading the system's certificates takes longer than a scrape."""
    try:
        context = ssl.create_default_context(cafile=access.ca_file or None)
        if access.cert_file:
            context.load_cert_chain(access.cert_file, access.key_file or None)
    except OSError as error:  # ssl.SSLError is one
        names = ", ".join(filter(None, (access.ca_file, access.cert_file, access.key_file)))
        raise AccessError(f"cannot use the certificates in {names} ({error})") from error
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
