"""The pages of the HTTP listener: metrics, health, slow requests."""

import json
from collections.abc import Callable, Sequence
from http import HTTPStatus

from barnabas.health.cluster_verdict import Verdict, verdict
from barnabas.node.cluster.known_cluster import overview_of, restart_reasons
from barnabas.node.cluster.readiness import READY, readiness
from barnabas.server.http.http_reply import JSON, Page, Reply
from barnabas.server.http.http_request import HttpRequest
from barnabas.server.metrics.broker_metrics import BrokerMetrics
from barnabas.server.metrics.exposition_text import CONTENT_TYPE
from barnabas.server.metrics.metered_server import MeteredServer
from barnabas.server.metrics.metric_families import Names

LIVE, SAFE, UNSAFE = "live", "safe", "unsafe"
UNAVAILABLE = int(HTTPStatus.SERVICE_UNAVAILABLE)
OFF = ("", "0", "false", "no", "off")
SPELLINGS = ", ".join(Names)

PageOf = Callable[[HttpRequest], Page]


class OperatorPages:
    """Finds the page of a request."""

    def __init__(self, server: MeteredServer, collected: BrokerMetrics) -> None:
        self._server = server
        self._node = server.node
        self._collected = collected
        self._pages: dict[str, tuple[PageOf, str]] = {
            "/metrics": (self._metrics, "metrics in the text format of Prometheus"),
            "/metrics/partitions": (self._partitions, "a series for each partition"),
            "/health/live": (self._live, "200 while the event loop answers"),
            "/health/ready": (self._ready, "200 while clients should use this broker"),
            "/health/cluster": (self._cluster, "200 unless the cluster is unavailable; ?strict"),
            "/health/restart-safe": (self._restart, "200 while this broker may be restarted"),
            "/debug/slow": (self._slow, "the last slow requests"),
        }

    def respond(self, request: HttpRequest) -> Page:
        """Return the page of a request."""
        if request.path == "/":
            return self._index()
        found = self._pages.get(request.path)
        return self._missing(request.path) if found is None else found[0](request)

    def _index(self) -> Page:
        yield from ()
        width = max(map(len, self._pages))
        lines = [f"{path:{width}}  {meaning}" for path, (_, meaning) in self._pages.items()]
        return Reply(body="\n".join([f"Barnabas, broker {self._node.node_id}", "", *lines, ""]))

    def _missing(self, path: str) -> Page:
        yield from ()
        return Reply(status=404, body=f"there is no page {path[:100]}; / lists all pages\n")

    def _metrics(self, request: HttpRequest) -> Page:
        yield from ()
        names = _names(request)
        if names is None:
            return _unknown_names()
        return Reply(content_type=CONTENT_TYPE, body=self._collected.main(names))

    def _partitions(self, request: HttpRequest) -> Page:
        yield from ()
        names = _names(request)
        if names is None:
            return _unknown_names()
        return Reply(content_type=CONTENT_TYPE, body=self._collected.of_partitions(names))

    def _live(self, request: HttpRequest) -> Page:
        del request
        yield from ()
        return _health(LIVE, [])

    def _ready(self, request: HttpRequest) -> Page:
        del request
        yield from ()
        found = readiness(self._node, serves_clients=self._server.serves_clients)
        return _health(found.verdict, found.reasons, fails=found.verdict != READY)

    def _cluster(self, request: HttpRequest) -> Page:
        health = verdict((yield from overview_of(self._node)))
        is_strict = request.parameters.get("strict", "no") not in OFF[1:]
        fails = health.verdict is Verdict.UNAVAILABLE
        if is_strict:
            fails = health.verdict is not Verdict.HEALTHY
        return _health(health.verdict.value, health.reasons, fails=fails, warnings=health.warnings)

    def _restart(self, request: HttpRequest) -> Page:
        del request
        reasons = yield from restart_reasons(self._node)
        return _health(UNSAFE if reasons else SAFE, reasons, fails=bool(reasons))

    def _slow(self, request: HttpRequest) -> Page:
        del request
        yield from ()
        slow = self._server.meters.slow
        found = {"count": slow.count, "requests": list(slow.newest_first())}
        return Reply(content_type=JSON, body=json.dumps(found, indent=1) + "\n")


def _names(request: HttpRequest) -> Names | None:
    wanted = request.parameters.get("names", Names.STRIMZI)
    return Names(wanted) if wanted in list(Names) else None


def _unknown_names() -> Reply:
    return Reply(status=400, body=f"names must be one of {SPELLINGS}\n")


def _health(
    word: str, reasons: Sequence[str], *, fails: bool = False, warnings: Sequence[str] = ()
) -> Reply:
    body: dict[str, object] = {"verdict": word, "reasons": list(reasons)}
    if warnings:
        body["warnings"] = list(warnings)
    return Reply(
        status=UNAVAILABLE if fails else 200,
        content_type=JSON,
        body=json.dumps(body) + "\n",
    )
