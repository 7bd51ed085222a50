"""Reads the head of an HTTP/1.1 request: the part of the protocol that this broker needs.

Only GET and HEAD are served, and neither has a body. What is not clearly right is refused, and the
connection is closed: two readers of one request must not disagree about where it ends.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

HEAD_BYTES_MAX = 8 * 1024
FIELDS_MAX = 100
PARAMETERS_MAX = 10
SERVED = ("GET", "HEAD")

_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (\S+) HTTP/(\d)\.(\d)", re.ASCII)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_TARGET = re.compile(r"(?:https?://[^/?#\s]*)?(/[^?#\s]*)(?:\?([^#\s]*))?", re.ASCII)
_GZIP = re.compile(r"(?:^|,)\s*(?:gzip|x-gzip|\*)\s*(?:;\s*q=(\d(?:\.\d{0,3})?)\s*)?(?=,|$)")


class HttpError(Exception):
    """A request that is answered with an error, after which the connection closes."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What a client asks for."""

    path: str
    parameters: Mapping[str, str]
    is_head: bool = False
    """Whether only the head of the response is wanted."""
    accepts_gzip: bool = False
    keeps_alive: bool = True
    """Whether the client may send another request on the connection."""
    has_chunks: bool = True
    """Whether the client knows responses in chunks: HTTP/1.1."""


def parse(head: bytes) -> HttpRequest:
    """Return the request of a head without its last empty line; raise `HttpError`."""
    try:
        line, *lines = head.decode("ascii").split("\r\n")
    except UnicodeDecodeError:
        raise HttpError(400, "the head of the request is not ASCII") from None
    found = _LINE.fullmatch(line)
    if found is None:
        raise HttpError(400, "the first line is no request line of HTTP")
    method, target, major, minor = found.groups()
    if major != "1":
        raise HttpError(505, "only HTTP/1.0 and HTTP/1.1 are served")
    if method not in SERVED:
        raise HttpError(405, f"{method} is not served; use GET or HEAD")
    fields = _fields(lines)
    is_new = int(minor) >= 1
    _check(fields, is_new=is_new)
    path, parameters = _target(target)
    connection = fields.get("connection", "").lower()
    return HttpRequest(
        path=path,
        parameters=parameters,
        is_head=method == "HEAD",
        accepts_gzip=_accepts_gzip(fields.get("accept-encoding", "")),
        keeps_alive="close" not in connection if is_new else "keep-alive" in connection,
        has_chunks=is_new,
    )


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the header fields, with names in lower case."""
    if len(lines) > FIELDS_MAX:
        raise HttpError(431, f"more than {FIELDS_MAX} header fields")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _NAME.fullmatch(name) or not value.replace("\t", " ").isprintable():
            raise HttpError(400, "a header field is malformed")
        name = name.lower()
        fields[name] = f"{fields[name]}, {value.strip()}" if name in fields else value.strip()
    return fields


def _check(fields: Mapping[str, str], *, is_new: bool) -> None:
    if is_new and "host" not in fields:
        raise HttpError(400, "the header field Host is missing")
    if "transfer-encoding" in fields or fields.get("content-length", "0") != "0":
        raise HttpError(400, "a request must not have a body")


def _target(target: str) -> tuple[str, dict[str, str]]:
    found = _TARGET.fullmatch(target)
    if found is None:
        raise HttpError(400, "the target of the request is malformed")
    try:
        pairs = parse_qsl(found[2] or "", keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    except ValueError:
        raise HttpError(400, f"more than {PARAMETERS_MAX} parameters") from None
    return found[1], dict(pairs)


def _accepts_gzip(text: str) -> bool:
    found = _GZIP.search(text)
    return found is not None and float(found[1] or 1) > 0
