"""Which metrics clients push, and how often (KIP-714), as a state machine without I/O.

A client asks for its subscription once, and pushes at the interval that it was told. Each broker
knows the clients that it has talked to; another broker gives a client the same subscription,
because its id is a checksum of its contents.
"""

import zlib
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.metadata.client_metrics_config import (
    ALL_METRICS,
    DEFAULT_INTERVAL_MS,
    KIND,
    Subscription,
    subscription,
)
from barnabas.metadata.metadata_records import ConfigChanged, MetadataRecord
from barnabas.model.errors import ApiError, ErrorCode

CLIENTS_MAX = 16_384
"""Clients that a broker remembers; the one that it heard from least recently is forgotten."""
BYTES_MAX = 1 << 20
"""Of one push, as it is sent. Kafka's telemetry.max.bytes."""
CODECS = (4, 3, 1, 2)
"""Accepted, the best first: zstd, lz4, gzip, snappy."""
UNCOMPRESSED = 0
NO_ID = bytes(16)
ID_BYTES = 16
ASK_AGAIN = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""After these a client asks for its subscription again without waiting."""


class Granted(NamedTuple):
    """What a client is told."""

    instance_id: bytes
    subscription_id: int
    interval_ms: int
    metrics: tuple[str, ...]


class Push(NamedTuple):
    """What a client says about a push, without its metrics."""

    subscription_id: int
    codec: int
    size: int
    is_last: bool


@dataclass(slots=True)
class Client:
    """A client, and what it was told."""

    granted: Granted
    version: int
    """Of the subscriptions that it was told of."""
    asked_ms: int | None = None
    pushed_ms: int | None = None
    has_pushed: bool = False
    """Whether it has pushed since it asked."""
    is_terminating: bool = False
    error: ErrorCode = ErrorCode.NONE
    """The last one that a push got."""

    def may_ask(self, now_ms: int) -> bool:
        """Whether it asks no earlier than it may."""
        times = [each for each in (self.asked_ms, self.pushed_ms) if each is not None]
        is_early = bool(times) and now_ms - max(times) < self.granted.interval_ms
        return not is_early or self.error in ASK_AGAIN

    def may_push(self, now_ms: int) -> bool:
        """Whether it pushes no earlier than it may; the first push after asking always may."""
        if self.pushed_ms is None or not self.has_pushed:
            return True
        return now_ms - self.pushed_ms >= self.granted.interval_ms


class ClientTelemetry:
    """The clients of one broker and their subscriptions."""

    def __init__(
        self,
        configs: Callable[[], Mapping[str, Mapping[str, str]]],
        random_bytes: Callable[[int], bytes],
        clients_max: int = CLIENTS_MAX,
    ) -> None:
        """`configs` returns the committed configs of all subscriptions, by name."""
        self._configs = configs
        self._random_bytes = random_bytes
        self._clients_max = clients_max
        self._clients: OrderedDict[bytes, Client] = OrderedDict()
        self._version = 0
        self._subscriptions: list[Subscription] | None = None

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Have each client ask again if subscriptions changed; None says that they may have."""
        if changes is None or any(map(_is_subscription, changes)):
            self._version += 1
            self._subscriptions = None

    def ask(self, instance_id: bytes, facts: Mapping[str, str], now_ms: int) -> Granted:
        """Return the subscription of a client; raise `ApiError` where it asks too early."""
        client = self._client(instance_id or NO_ID, facts)
        if not client.may_ask(now_ms):
            raise ApiError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the client asks before its push interval"
            )
        client.asked_ms, client.error = now_ms, ErrorCode.NONE
        client.has_pushed = False
        return client.granted

    def push(
        self, instance_id: bytes, facts: Mapping[str, str], push: Push, now_ms: int
    ) -> Granted:
        """Accept a push; raise `ApiError` where it is refused."""
        if instance_id == NO_ID:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a push needs the id of its client")
        client = self._client(instance_id, facts)
        client.error = self._refused(client, push, now_ms)
        if client.error is not ErrorCode.NONE:
            raise ApiError(client.error)
        client.is_terminating = push.is_last
        return client.granted

    def _refused(self, client: Client, push: Push, now_ms: int) -> ErrorCode:
        """Return why a push is refused, as Kafka does in this order."""
        if client.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if client.may_push(now_ms):
            client.pushed_ms, client.has_pushed = now_ms, True
        elif not push.is_last:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if push.subscription_id != client.granted.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if push.codec not in (UNCOMPRESSED, *CODECS):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if push.size > BYTES_MAX:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _client(self, instance_id: bytes, facts: Mapping[str, str]) -> Client:
        if instance_id == NO_ID:
            instance_id = self._random_bytes(ID_BYTES)
        client = self._clients.get(instance_id)
        if client is None or client.version != self._version:
            client = Client(self._grant(instance_id, facts), self._version)
            self._clients[instance_id] = client
        self._clients.move_to_end(instance_id)
        if len(self._clients) > self._clients_max:
            self._clients.popitem(last=False)
        return client

    def _grant(self, instance_id: bytes, facts: Mapping[str, str]) -> Granted:
        known = {**facts, "client_instance_id": shown_id(instance_id)}
        matching = [each for each in self._all() if each.includes(known)]
        names = {name for each in matching for name in each.metrics}
        metrics = (ALL_METRICS,) if ALL_METRICS in names else tuple(sorted(names))
        interval_ms = min((each.interval_ms for each in matching), default=DEFAULT_INTERVAL_MS)
        contents = f"{interval_ms},{','.join(metrics)}".encode()
        checksum = zlib.crc32(contents) ^ zlib.crc32(instance_id)
        subscription_id = checksum - (1 << 32) if checksum >> 31 else checksum
        return Granted(instance_id, subscription_id, interval_ms, metrics)

    def _all(self) -> list[Subscription]:
        if self._subscriptions is None:
            self._subscriptions = [subscription(each) for each in self._configs().values()]
        return self._subscriptions


def _is_subscription(change: MetadataRecord) -> bool:
    return isinstance(change, ConfigChanged) and change.kind == KIND


def shown_id(instance_id: bytes) -> str:
    """Return an id as Kafka shows it."""
    return b64encode(instance_id, b"-_").decode().rstrip("=")
