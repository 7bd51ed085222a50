"""Client quotas: finds the quota of a client, and charges its buckets.

A client is a user with a client id. Of the quotas in the metadata the first of these applies, for
each key separately (`ENTITIES`):

    user and client-id, user and default client-id, user,
    default user and client-id, default user and default client-id, default user,
    client-id, default client-id, and last the broker's own settings

A bucket belongs to the entity of the quota: the clients of a user share the bucket of a `user`
quota. Under a default quota each user, or each client id, has a separate bucket. Each broker counts
separately.

A client holds a `ClientQuota`, which finds its buckets again after quotas have changed. So the cost
of a change does not depend on the number of clients.

Clients without a client id share the bucket of an empty one; in Kafka they have no client-id quota.
"""

from collections.abc import Mapping
from enum import IntEnum
from ipaddress import ip_address

from barnabas.metadata.security_image import Entity
from barnabas.security.buckets import Bucket, BucketTable

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"

CLIENTS_MAX = 10_000
NS_PER_MS = 1_000_000
REQUEST_PAUSE_MS_MAX = 1_000
"""The longest pause for used time of the event loop, as in Kafka."""
RATE_MAX = 1e15
"""A larger rate counts as no limit, and would overflow."""


class QuotaKind(IntEnum):
    """The kinds of quotas of users and client ids."""

    PRODUCE = 0
    FETCH = 1
    REQUEST = 2
    MUTATION = 3


KEYS = {
    "producer_byte_rate": QuotaKind.PRODUCE,
    "consumer_byte_rate": QuotaKind.FETCH,
    "request_percentage": QuotaKind.REQUEST,
    "controller_mutation_rate": QuotaKind.MUTATION,
}
CONNECTION_RATE = "connection_creation_rate"
"""The only key of a quota of an address."""
IP_DEFAULT: Entity = ((IP, None),)
MS_PER_PERCENT = 10.0
"""One percent of the event loop, in milliseconds per second. 100 percent is all of it."""


class ClientQuota:
    """The quota of one client."""

    __slots__ = ("_buckets", "_client_id", "_generation", "_quotas", "_user")

    def __init__(self, quotas: "ClientQuotas", user: str, client_id: str) -> None:
        self._quotas = quotas
        self._user = user
        self._client_id = client_id
        self._generation = -1
        self._buckets: list[Bucket | None] = []

    def bucket(self, kind: QuotaKind, now_ms: int) -> Bucket | None:
        """Return the bucket that is charged; None if there is no limit."""
        quotas = self._quotas
        if self._generation != quotas.generation:
            self._generation = quotas.generation
            self._buckets = quotas.buckets_of(self._user, self._client_id, now_ms)
        return self._buckets[kind]

    def use(self, kind: QuotaKind, amount: float, now_ms: int) -> int:
        """Charge an amount; return how long the client must pause."""
        bucket = self.bucket(kind, now_ms)
        return 0 if bucket is None else bucket.use(amount, now_ms)

    def debt_ms(self, kind: QuotaKind, now_ms: int) -> int:
        """Return how long the client must still pause for its earlier use."""
        bucket = self.bucket(kind, now_ms)
        return 0 if bucket is None else bucket.debt_ms(now_ms)

    def charge_time(self, duration_ns: int, now_ms: int) -> bool:
        """Charge time of the event loop; return whether the client is over its quota."""
        bucket = self.bucket(QuotaKind.REQUEST, now_ms)
        return bucket is not None and bucket.use(duration_ns / NS_PER_MS, now_ms) > 0

    def request_debt_ms(self, now_ms: int) -> int:
        """Return how long the client must pause for the time of the event loop that it used."""
        return min(self.debt_ms(QuotaKind.REQUEST, now_ms), REQUEST_PAUSE_MS_MAX)

    def fetch_bytes_max(self, now_ms: int) -> int | None:
        """Return how many bytes one fetch may return at most; None if there is no limit.

        It is the amount that needs no pause, and at least one second of the quota: otherwise a
        consumer at its limit would get very small pieces.
        """
        bucket = self.bucket(QuotaKind.FETCH, now_ms)
        return None if bucket is None else max(1, int(max(bucket.room(now_ms), bucket.rate)))


class ClientQuotas:
    """All quotas of a broker, and the clients that are charged.

    `limits` and `times_requests` are attributes, since each request reads them: without quotas this
    is the only extra cost of a request.
    """

    def __init__(self, producer_default: float = 0, consumer_default: float = 0) -> None:
        self._defaults = {
            QuotaKind.PRODUCE: float(producer_default),
            QuotaKind.FETCH: float(consumer_default),
        }
        """The broker's settings, for each client id; 0 means no limit."""
        self._rates: dict[QuotaKind, dict[Entity, float]] = {kind: {} for kind in QuotaKind}
        self._connection_rates: dict[Entity, float] = {}
        self._tables = {kind: BucketTable() for kind in QuotaKind}
        self._addresses = BucketTable()
        self._clients: dict[tuple[str, str], ClientQuota] = {}
        """The quotas of clients; the least recently requested one is first."""
        self.generation = 0
        """Increases with each change, so that `ClientQuota` looks its buckets up again."""
        self.limits = False
        """Whether any quota for clients is set."""
        self.times_requests = False
        """Whether the time that requests take must be measured."""
        self.limits_connections = False
        """Whether any address has a limit."""
        self._changed()

    def replace(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        """Replace all quotas."""
        for rates in self._rates.values():
            rates.clear()
        self._connection_rates.clear()
        for entity, values in quotas.items():
            for key, value in values.items():
                self._put(entity, key, value)
        self._changed()

    def change(self, entity: Entity, key: str, value: float | None) -> None:
        """Set one quota, or remove it."""
        self._put(entity, key, value)
        self._changed()

    def of(self, user: str, client_id: str | None) -> ClientQuota:
        """Return the quota of a client."""
        key = (user, client_id or "")
        found = self._clients.pop(key, None)
        if found is None:
            found = ClientQuota(self, *key)
            if len(self._clients) >= CLIENTS_MAX:
                del self._clients[next(iter(self._clients))]
        self._clients[key] = found
        return found

    def buckets_of(self, user: str, client_id: str, now_ms: int) -> list[Bucket | None]:
        """Return the buckets of a client, in the order of `QuotaKind`."""
        entities = _entities(user, client_id)
        return [self._bucket_of(kind, entities, client_id, now_ms) for kind in QuotaKind]

    def connection_bucket(self, host: str, now_ms: int) -> Bucket | None:
        """Return the bucket that an address's new connections are charged to."""
        rates, host = self._connection_rates, address_of(host)
        rate = rates.get(((IP, host),))
        if rate is None:
            rate = rates.get(IP_DEFAULT)
        if rate is None or rate >= RATE_MAX:
            return None
        return self._addresses.find(host, rate, now_ms)

    def _bucket_of(
        self, kind: QuotaKind, entities: list[tuple[Entity, Entity]], client_id: str, now_ms: int
    ) -> Bucket | None:
        rates = self._rates[kind]
        rate, owner = self._defaults.get(kind, 0.0), ((CLIENT_ID, client_id),)
        for entity, charged in entities if rates else ():
            found = rates.get(entity)
            if found is not None:
                rate, owner = found, charged  # type: ignore[assignment]
                break
        if not 0 < rate < RATE_MAX:
            return None
        return self._tables[kind].find(owner, rate, now_ms)

    def _put(self, entity: Entity, key: str, value: float | None) -> None:
        if key == CONNECTION_RATE:
            _put(self._connection_rates, _with_address(entity), value)
        elif key in KEYS:  # a key of a later release limits nothing here
            kind = KEYS[key]
            scale = MS_PER_PERCENT if kind is QuotaKind.REQUEST else 1.0
            _put(self._rates[kind], entity, None if value is None else value * scale)

    def _changed(self) -> None:
        self.generation += 1
        self.limits = any(self._defaults.values()) or any(self._rates.values())
        self.times_requests = bool(self._rates[QuotaKind.REQUEST])
        self.limits_connections = bool(self._connection_rates)


def address_of(host: str) -> str:
    """Return an address in its usual form; IPv4 within IPv6 becomes IPv4."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _entities(user: str, client_id: str) -> list[tuple[Entity, Entity]]:
    """Return the entities that may have a quota for a client, each with the key of its bucket."""
    both: Entity = ((CLIENT_ID, client_id), (USER, user))
    user_alone: Entity = ((USER, user),)
    client_alone: Entity = ((CLIENT_ID, client_id),)
    return [
        (both, both),
        (((CLIENT_ID, None), (USER, user)), both),
        (user_alone, user_alone),
        (((CLIENT_ID, client_id), (USER, None)), both),
        (((CLIENT_ID, None), (USER, None)), both),
        (((USER, None),), user_alone),
        (client_alone, client_alone),
        (((CLIENT_ID, None),), client_alone),
    ]


def _with_address(entity: Entity) -> Entity:
    ((kind, host),) = entity
    return ((kind, None if host is None else address_of(host)),)


def _put(rates: dict[Entity, float], entity: Entity, value: float | None) -> None:
    if value is None:
        rates.pop(entity, None)
    else:
        rates[entity] = value
