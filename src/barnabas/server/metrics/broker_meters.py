"""Counts the requests of a broker, for its HTTP listener.

`count_request` runs once a request, so it only adds to plain numbers. What takes longer, such as
rates and quantiles, is worked out every ten seconds, or when the metrics are read.
"""

import time
from collections import Counter, defaultdict, deque
from typing import NamedTuple

from barnabas.model.durations import parse_duration_ms
from barnabas.model.meters import AnsweredRequest, Gauge
from barnabas.model.settings import ObservabilitySettings
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS
from barnabas.server.metrics.client_rates import ClientRates
from barnabas.server.metrics.histogram import NS_PER_US, Histogram
from barnabas.server.metrics.slow_requests import NS_PER_MS, Clock, Later, SlowRequests, never

PRODUCE, FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)
OF_CLIENTS = (PRODUCE, FETCH)
"""The APIs whose bytes are counted by client id."""
FOLLOWER_FETCH = -FETCH - 1
"""In place of the API key of a Fetch request of another broker."""
NAMES = {FETCH: "FetchConsumer", FOLLOWER_FETCH: "FetchFollower"}
UNKNOWN = -1
"""A number that is no API, or a version that an API does not have."""
NEVER_NS = 1 << 62
SOFTWARE_MAX = 100
"""How many names and versions of client software are told apart."""
OTHER_SOFTWARE = ("other", "")


class ApiMeter:
    """The requests of one API."""

    __slots__ = ("highest", "latency", "name", "slow_ns", "versions")

    def __init__(self, name: str, highest: int, slow_ns: int) -> None:
        self.name = name
        self.highest = highest
        """The highest version that the protocol has."""
        self.slow_ns = slow_ns
        self.versions: dict[int, int] = defaultdict(int)
        """How many requests there were, by version."""
        self.latency = Histogram()
        """In microseconds."""


class FinishedSync(NamedTuple):
    """An fsync that a thread has carried out."""

    started_ns: int
    ended_ns: int
    appends: int


class BrokerMeters:
    """Everything that is counted outside the node."""

    is_collecting = True

    def __init__(
        self,
        settings: ObservabilitySettings,
        clock: Clock,
        *,
        is_alone: bool,
        later: Later = never,
    ) -> None:
        self._limits_ns = _limits_ns(settings)
        self._slow_ns = settings.slow_request_ms * NS_PER_MS or NEVER_NS
        self._by_key: dict[int, ApiMeter] = {}
        self._unknown = ApiMeter("Unknown", UNKNOWN, NEVER_NS)
        self.errors: Counter[tuple[str, int]] = Counter()
        """Responses by API and first error code."""
        self.waiting: Counter[int] = Counter()
        """Requests whose response is pending, by API key."""
        self.software: Counter[tuple[str, str]] = Counter()
        self.clients = ClientRates()
        self.slow = SlowRequests(clock, is_alone=is_alone, later=later)
        self.sync_us = Histogram()
        self.sync_appends = Histogram()
        self._finished: deque[FinishedSync] = deque()
        self.gauges: dict[str, Gauge] = {}

    @property
    def apis(self) -> list[ApiMeter]:
        """The APIs that were called."""
        return sorted(self._by_key.values(), key=lambda each: each.name)

    def count_request(self, request: AnsweredRequest) -> None:
        """Count one request."""
        key = request.api_key
        if key == FETCH and request.caller.listener.is_peer:
            key = FOLLOWER_FETCH
        meter = self._by_key.get(key)
        if meter is None:
            meter = self._add(key)
        version = request.api_version
        if request.error_code:
            self.errors[meter.name, request.error_code] += 1
            if not 0 <= version <= meter.highest:
                version = UNKNOWN
        meter.versions[version] += 1
        latency_ns = request.latency_ns
        latency_us = latency_ns // NS_PER_US
        latency = meter.latency
        latency.counts[(latency_us * latency_us).bit_length()] += 1
        latency.total += latency_us
        if latency_ns + request.queued_ms * NS_PER_MS > meter.slow_ns:
            self.take_syncs()
            self.slow.note(meter.name, request, time.perf_counter_ns())
        if key in OF_CLIENTS:
            self._count_client(request, is_fetch=key == FETCH)

    def begin_wait(self, api_key: int) -> None:
        """Count a request whose response is pending."""
        self.waiting[api_key] += 1

    def end_wait(self, api_key: int) -> None:
        """Stop counting it."""
        self.waiting[api_key] -= 1

    def name_software(self, software: tuple[str, str]) -> None:
        """Count a client that has connected, by its software."""
        known = software in self.software or len(self.software) < SOFTWARE_MAX
        self.software[software if known else OTHER_SOFTWARE] += 1

    def forget_software(self, software: tuple[str, str]) -> None:
        """Stop counting it."""
        key = software if software in self.software else OTHER_SOFTWARE
        self.software[key] -= 1
        if self.software[key] <= 0:
            del self.software[key]

    def watch(self, name: str, read: Gauge) -> None:
        """Register a gauge."""
        self.gauges[name] = read

    def note_sync(self, started_ns: int, ended_ns: int, appends: int) -> None:
        """Note an fsync; called on the thread that carried it out."""
        self._finished.append(FinishedSync(started_ns, ended_ns, appends))

    def turn(self, passed_ms: int, *, is_new_minute: bool) -> None:
        """Work out rates; to be called every ten seconds."""
        self.take_syncs()
        self.clients.turn(passed_ms)
        self.slow.tell_left_out()
        if is_new_minute:
            for histogram in (self.sync_us, self.sync_appends):
                histogram.pass_minute()
            for meter in self._by_key.values():
                meter.latency.pass_minute()

    def take_syncs(self) -> None:
        """Count the fsyncs that threads have reported."""
        while self._finished:
            started_ns, ended_ns, appends = self._finished.popleft()
            self.sync_us.observe((ended_ns - started_ns) // NS_PER_US)
            self.sync_appends.observe(appends)
            self.slow.note_sync(started_ns, ended_ns)

    def _add(self, key: int) -> ApiMeter:
        """Return the meter of an API that is called for the first time.

        Clients may send numbers that are no API: those share a meter.
        """
        facts = APIS.get(FETCH if key == FOLLOWER_FETCH else key)
        if facts is None:
            self._unknown = self._by_key.setdefault(UNKNOWN, self._unknown)
            return self._unknown
        limit_ns = self._limits_ns.get(facts.name, self._slow_ns)
        name = NAMES.get(key, facts.name)
        meter = self._by_key[key] = ApiMeter(name, facts.high, limit_ns)
        return meter

    def _count_client(self, request: AnsweredRequest, *, is_fetch: bool) -> None:
        client = self.clients.find(request.client_id)
        if client is None:
            return
        flow = client.fetched if is_fetch else client.produced
        flow.size += request.bytes_out if is_fetch else request.bytes_in
        flow.requests += 1
        flow.throttle_ms += request.throttle_ms


def _limits_ns(settings: ObservabilitySettings) -> dict[str, int]:
    """Return the limits of single APIs, from texts such as `Fetch:1s`."""
    found = {}
    for text in settings.slow_request_times:
        name, _, time_text = text.partition(":")
        limit_ms = int(time_text) if time_text.isdecimal() else parse_duration_ms(time_text)
        found[name] = limit_ms * NS_PER_MS or NEVER_NS
    return found
