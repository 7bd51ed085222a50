"""Reads /metrics and /debug/slow of brokers over HTTP."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from barnabas.monitor.cluster_answers import Scrape
from barnabas.monitor.metrics_page import parse_page
from barnabas.monitor.scrape_figures import BUILD_INFO, USED
from barnabas.wire.addresses import split_address
from barnabas.wire.wire_failures import LinkError

TIMEOUT_S = 3.0
PAGE_BYTES_MAX = 64 << 20
ID_LABELS = ("node_id", "broker_id", "id")


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """Where a broker serves its metrics, as [ID=]HOST:PORT."""

    host: str
    port: int
    broker: int | None
    """The id of the broker, if it was given."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def metrics_address(text: str) -> MetricsAddress:
    """Parse [ID=]HOST:PORT."""
    number, equals, place = text.strip().rpartition("=")
    if equals and not number.isdecimal():
        raise LinkError(f"Metrics address {text!r} is not [ID=]HOST:PORT; {number!r} is no id")
    host, port = split_address(place)
    return MetricsAddress(host, port, int(number) if equals else None)


def scrape(address: MetricsAddress) -> Scrape:
    """Return what a broker serves; raise `LinkError` if it serves nothing."""
    try:
        page = _get(address, "/metrics")
        slow = _get(address, "/debug/slow")
    except (OSError, HTTPException) as error:
        raise LinkError(
            f"no metrics at {address} ({error}); start the broker with --http, or correct --metrics"
        ) from error
    if page is None:
        raise LinkError(f"no metrics at {address}; correct --metrics")
    return Scrape(
        address=str(address),
        samples=parse_page(page.decode("utf-8", "replace"), USED),
        slow_requests=_slow(slow),
    )


def broker_of(address: MetricsAddress, scraped: Scrape, hosts: Mapping[int, str]) -> int | None:
    """Return which broker serves an address: as given, as it says itself, or the one on the host.

    None if several brokers are on that host.
    """
    if address.broker is not None:
        return address.broker
    for labels, _ in scraped.samples.get(BUILD_INFO, ()):
        for name in ID_LABELS:
            if labels.get(name, "").isdecimal():
                return int(labels[name])
    there = [broker for broker, host in hosts.items() if host == address.host]
    if len(hosts) == 1:
        there = list(hosts)
    return there[0] if len(there) == 1 else None


def _get(address: MetricsAddress, path: str) -> bytes | None:
    """Return the body of a page; None if there is no such page."""
    connection = HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(PAGE_BYTES_MAX)
    finally:
        connection.close()
    return body if answer.status == 200 else None


def _slow(body: bytes | None) -> Sequence[Mapping[str, object]] | None:
    if body is None:
        return None
    try:
        found = json.loads(body)
    except ValueError:
        return None
    listed = found.get("slow_requests", found.get("requests")) if isinstance(found, dict) else found
    return tuple(each for each in listed or () if isinstance(each, dict))
