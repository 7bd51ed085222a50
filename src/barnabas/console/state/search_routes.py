"""`/api/search`: topics, groups, brokers, pages and actions by a part of their names."""

import urllib.parse
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from starlette.routing import Route

from barnabas.console.console_endpoints import Asked, ConsoleParts, get
from barnabas.monitor.states import ClusterState

SHOWN_MAX = 20


class Hit(NamedTuple):
    """Something that a search can find."""

    kind: str
    name: str
    url: str


PAGES = (
    Hit("page", "Overview", "/"),
    Hit("page", "Topics", "/topics"),
    Hit("page", "Groups", "/groups"),
    Hit("page", "Messages", "/messages"),
    Hit("page", "Brokers", "/brokers"),
    Hit("page", "Plans", "/plans"),
    Hit("page", "Telemetry", "/telemetry"),
    Hit("page", "Streams", "/streams"),
    Hit("page", "Alerts", "/alerts"),
)
ACTIONS = (
    Hit("action", "Create a topic", "/topics?create=1"),
    Hit("action", "Produce a message", "/messages?produce=1"),
    Hit("action", "Balance replicas", "/plans?kind=balance"),
    Hit("action", "Elect preferred leaders", "/plans?kind=elect"),
)


def search_routes(parts: ConsoleParts) -> list[Route]:
    """Return the route of the search."""

    def search(asked: Asked) -> object:
        text = asked.query.get("q", "").strip().casefold()
        actions = () if asked.session.read_only else ACTIONS
        state = None if parts.snapshots.latest is None else parts.state(asked)
        hits = find(state, text, (*PAGES, *actions))
        return {"items": [each._asdict() for each in hits]}

    return [get(parts, "/api/search", search)]


def find(state: ClusterState | None, text: str, fixed: Iterable[Hit]) -> list[Hit]:
    """Return the best hits: names that are the text, begin with it, then contain it."""
    ranked: list[tuple[int, int, str, Hit]] = []
    for hit in (*fixed, *_hits(state)):
        name = hit.name.casefold()
        if text in name:
            rank = 0 if name == text else 1 if name.startswith(text) else 2
            ranked.append((rank, len(name), name, hit))
    return [hit for *_, hit in sorted(ranked)[:SHOWN_MAX]]


def _hits(state: ClusterState | None) -> Iterator[Hit]:
    if state is None:
        return
    for name in state.topics:
        yield Hit("topic", name, f"/topics/{segment(name)}")
    for name in state.groups:
        yield Hit("group", name, f"/groups/{segment(name)}")
    for broker in state.overview.brokers:
        yield Hit("broker", f"Broker {broker.id} {broker.address}", f"/brokers/{broker.id}")


def segment(name: str) -> str:
    """Return a name as one segment of a path; browsers would resolve `.` and `..`."""
    if name in (".", ".."):
        return "%252E" * len(name)
    return urllib.parse.quote(name, safe="")
