"""`barnabas probe`: ask a broker's HTTP listener for its health; the exit code is the answer."""

import http.client
import json
import sys
from enum import StrEnum
from typing import Annotated, NamedTuple

import typer

from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import Json
from barnabas.cli.common.output import print_json, say

HELP = (
    "Ask a broker for its health over HTTP. Exit code 0: live, ready, healthy or safe; 1: not, or "
    "no answer. For cluster: 1 is degraded, 2 is unavailable or no answer."
)
EPILOG = "Example: barnabas probe ready --http 127.0.0.1:9644"
DEFAULT_HTTP = "127.0.0.1:9644"
OK, FAILED, UNAVAILABLE = 0, 1, 2
BODY_BYTES_MAX = 1 << 20


class Check(StrEnum):
    """What to ask."""

    LIVE = "live"
    READY = "ready"
    CLUSTER = "cluster"
    RESTART_SAFE = "restart-safe"


class Found(NamedTuple):
    """The answer of a broker, or why there is none."""

    status: int
    verdict: str
    reasons: list[str]


def probe(
    check: Annotated[Check, typer.Argument(help="What to ask.")],
    http_address: Annotated[
        str,
        typer.Option(
            "--http",
            envvar="BARNABAS_PROBE_HTTP",
            metavar="HOST:PORT",
            help="The HTTP listener of the broker: its observability.http_listen.",
        ),
    ] = DEFAULT_HTTP,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How long to wait for an answer.")
    ] = 5.0,
    strict: Annotated[
        bool, typer.Option("--strict", help="For cluster: ask for 503 where it is degraded.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask a broker for its health."""
    found = _ask(check, _address(http_address), timeout, strict=strict)
    if as_json:
        print_json({"verdict": found.verdict, "reasons": found.reasons, "status": found.status})
    else:
        say(found.verdict)
        for reason in found.reasons:
            say(f"  {reason}")
    sys.exit(exit_code(check, found))


def exit_code(check: Check, found: Found) -> int:
    """Return the exit code for an answer."""
    if check is Check.CLUSTER:
        return {"healthy": OK, "degraded": FAILED}.get(found.verdict, UNAVAILABLE)
    return OK if found.status == http.client.OK else FAILED


def _address(text: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal():
        raise CommandError(f"--http {text!r} is not HOST:PORT; write {DEFAULT_HTTP}, for example")
    return host.strip("[]"), int(port)


def _ask(check: Check, address: tuple[str, int], timeout_s: float, *, strict: bool) -> Found:
    path = f"/health/{check}" + ("?strict" if strict and check is Check.CLUSTER else "")
    connection = http.client.HTTPConnection(*address, timeout=timeout_s)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        body = response.read(BODY_BYTES_MAX)
    except (OSError, http.client.HTTPException) as error:
        host, port = address
        reason = str(error) or type(error).__name__
        return Found(0, "no answer", [f"{host}:{port} does not answer over HTTP: {reason}"])
    finally:
        connection.close()
    return _read(response.status, body)


def _read(status: int, body: bytes) -> Found:
    try:
        found = json.loads(body)
        return Found(status, str(found["verdict"]), [str(each) for each in found["reasons"]])
    except (ValueError, KeyError, TypeError):
        return Found(status, "no answer", [f"the answer, status {status}, is not of a broker"])
