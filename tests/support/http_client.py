"""A client for the HTTP listener of a broker: pages, metrics, and raw bytes."""

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

PATIENCE_S = 30.0
Address = tuple[str, int]
Labels = frozenset[tuple[str, str]]


class Page(NamedTuple):
    """A response."""

    status: int
    fields: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.content)


def ask(address: Address | None, path: str, method: str = "GET", **fields: str) -> Page:
    """Return a page."""
    assert address is not None
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE_S)
    try:
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        connection.request(method, path, headers=named)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Page(response.status, found, response.read())
    finally:
        connection.close()


class Samples:
    """What a scrape found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.types: dict[str, str] = {}
        self.by_name: dict[str, dict[Labels, float]] = {}
        for family in text_string_to_metric_families(text):
            self.types[family.name] = family.type
            for sample in family.samples:
                labels = frozenset(sample.labels.items())
                found = self.by_name.setdefault(sample.name, {})
                assert labels not in found, f"{sample.name} {sample.labels} comes twice"
                found[labels] = sample.value

    def value(self, name: str, **labels: str) -> float:
        """Return one value."""
        return self.by_name[name][frozenset(labels.items())]

    def get(self, name: str, **labels: str) -> float:
        """Return one value, or 0 where there is no such series."""
        return self.by_name.get(name, {}).get(frozenset(labels.items()), 0.0)

    def series(self, name: str) -> list[dict[str, str]]:
        """Return the labels of all series of a name."""
        return [dict(labels) for labels in self.by_name.get(name, {})]


def scrape(address: Address | None, path: str = "/metrics") -> Samples:
    """Return the metrics of a broker, as Prometheus reads them."""
    page = ask(address, path)
    assert page.status == 200, page.text
    assert page.fields["content-type"].startswith("text/plain; version=0.0.4")
    return Samples(page.text)


@contextmanager
def connected(address: Address | None, receive_buffer: int = 0) -> Iterator[socket.socket]:
    """Connect to the listener, for bytes that no HTTP client would send."""
    assert address is not None
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        if receive_buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.settimeout(PATIENCE_S)
        made.connect(address)
        yield made


def receive_until_closed(connection: socket.socket) -> bytes:
    """Return everything that the broker sends until it closes the connection."""
    parts: list[bytes] = []
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return b"".join(parts)
        if not part:
            return b"".join(parts)
        parts.append(part)
