"""Client quotas: the quota of a client, the clients that share its bucket, and its pauses."""

import pytest

from barnabas.metadata.security_image import entity_of
from barnabas.security import buckets, client_quotas
from barnabas.security.buckets import WINDOW_S, Bucket
from barnabas.security.client_quotas import ClientQuotas, QuotaKind, address_of

RATE = 1_000
PRODUCE, FETCH, REQUEST, MUTATION = QuotaKind
KEY_OF = {kind: key for key, kind in client_quotas.KEYS.items()}

ENTITIES: list[dict[str, str | None]] = [
    {"client-id": None},
    {"client-id": "c"},
    {"user": None},
    {"user": None, "client-id": None},
    {"user": None, "client-id": "c"},
    {"user": "u"},
    {"user": "u", "client-id": None},
    {"user": "u", "client-id": "c"},
]
"""The weakest first."""


def put(
    quotas: ClientQuotas,
    entity: dict[str, str | None],
    value: float | None,
    kind: QuotaKind = PRODUCE,
) -> None:
    quotas.change(entity_of(entity), KEY_OF[kind], value)


def rate_of(
    quotas: ClientQuotas, user: str = "u", client_id: str | None = "c", kind: QuotaKind = PRODUCE
) -> float | None:
    bucket = quotas.of(user, client_id).bucket(kind, 0)
    return None if bucket is None else bucket.rate


def test_ten_seconds_worth_may_be_used_at_once() -> None:
    bucket = Bucket(RATE, 0)
    assert bucket.use(RATE * WINDOW_S, 0) == 0
    assert bucket.use(500, 0) == 501
    assert bucket.debt_ms(0) == 501


def test_a_debt_is_over_when_its_time_is() -> None:
    bucket = Bucket(RATE, 0)
    pause_ms = bucket.use(13 * RATE, 0)
    assert bucket.debt_ms(pause_ms - 2) > 0
    assert bucket.debt_ms(pause_ms) == 0


def test_no_more_than_ten_seconds_are_saved_up() -> None:
    bucket = Bucket(RATE, 0)
    assert bucket.use(WINDOW_S * RATE, 3_600_000) == 0
    assert bucket.use(1, 3_600_000) > 0


def test_a_clock_that_stands_still_or_is_late_fills_nothing() -> None:
    bucket = Bucket(RATE, 5_000)
    bucket.use(12 * RATE, 5_000)
    assert bucket.debt_ms(4_000) == bucket.debt_ms(5_000) == 2_001


def test_the_most_specific_quota_counts() -> None:
    quotas = ClientQuotas(producer_default=5)
    assert rate_of(quotas) == 5
    for number, entity in enumerate(ENTITIES, 10):
        put(quotas, entity, number)
        assert rate_of(quotas) == number
    for number, entity in reversed(list(enumerate(ENTITIES, 10))):
        assert rate_of(quotas) == number
        put(quotas, entity, None)
    assert rate_of(quotas) == 5


def test_each_key_is_looked_up_on_its_own() -> None:
    quotas = ClientQuotas()
    put(quotas, {"user": "u"}, 7, FETCH)
    put(quotas, {"client-id": "c"}, 9, PRODUCE)
    assert rate_of(quotas, kind=FETCH) == 7
    assert rate_of(quotas, kind=PRODUCE) == 9
    assert rate_of(quotas, kind=MUTATION) is None


def test_quotas_of_others_do_not_count() -> None:
    quotas = ClientQuotas()
    others: list[dict[str, str | None]] = [
        {"user": "x"},
        {"client-id": "x"},
        {"user": "u", "client-id": "x"},
    ]
    for entity in others:
        put(quotas, entity, 1)
    assert rate_of(quotas) is None


def is_shared(quotas: ClientQuotas, one: tuple[str, str], other: tuple[str, str]) -> bool:
    first, second = quotas.of(*one).bucket(PRODUCE, 0), quotas.of(*other).bucket(PRODUCE, 0)
    return first is second


@pytest.mark.parametrize(
    ("entity", "by_user", "by_client"),
    [
        ({"user": "u"}, True, False),
        ({"user": None}, True, False),
        ({"client-id": "c"}, False, True),
        ({"client-id": None}, False, True),
        ({"user": None, "client-id": None}, False, False),
    ],
)
def test_who_shares_a_bucket(entity: dict[str, str | None], by_user: bool, by_client: bool) -> None:
    quotas = ClientQuotas()
    put(quotas, entity, RATE)
    assert is_shared(quotas, ("u", "c"), ("u", "d")) is by_user
    assert is_shared(quotas, ("u", "c"), ("v", "c")) is by_client
    assert is_shared(quotas, ("u", "c"), ("u", "c"))


def test_the_settings_give_each_client_id_a_bucket() -> None:
    quotas = ClientQuotas(producer_default=RATE)
    assert is_shared(quotas, ("u", "c"), ("v", "c"))
    assert not is_shared(quotas, ("u", "c"), ("u", "d"))
    assert rate_of(quotas, client_id=None) == RATE
    assert rate_of(quotas, kind=FETCH) is None


def test_a_change_reaches_clients_that_are_connected() -> None:
    quotas = ClientQuotas()
    client = quotas.of("u", "c")
    assert client.use(PRODUCE, 1 << 40, 0) == 0
    put(quotas, {"user": "u"}, RATE)
    assert client.use(PRODUCE, 11 * RATE, 0) == 1_001
    put(quotas, {"user": "u"}, 2 * RATE)
    assert client.debt_ms(PRODUCE, 0) == 501, "the debt stays, and is paid sooner"
    put(quotas, {"user": "u"}, None)
    assert client.debt_ms(PRODUCE, 0) == 0


def test_a_lower_quota_takes_what_was_saved_up() -> None:
    quotas = ClientQuotas()
    put(quotas, {"user": "u"}, 1_000 * RATE)
    client = quotas.of("u", "c")
    assert client.use(PRODUCE, 1, 0) == 0
    put(quotas, {"user": "u"}, RATE)
    assert client.use(PRODUCE, 10 * RATE, 0) == 0
    assert client.use(PRODUCE, RATE, 0) > 0


def test_replacing_all_quotas() -> None:
    quotas = ClientQuotas()
    put(quotas, {"user": "u"}, RATE)
    quotas.replace({entity_of({"user": "v"}): {"request_percentage": 10.0, "unknown": 3.0}})
    assert rate_of(quotas) is None
    assert rate_of(quotas, user="v", kind=REQUEST) == 100.0
    assert (quotas.limits, quotas.times_requests) == (True, True)
    quotas.replace({})
    assert (quotas.limits, quotas.times_requests) == (False, False)


def test_no_quota_limits_nothing() -> None:
    quotas = ClientQuotas()
    assert not quotas.limits
    client = quotas.of("u", None)
    assert client.use(PRODUCE, 1 << 60, 0) == client.debt_ms(PRODUCE, 0) == 0
    assert client.fetch_bytes_max(0) is None
    assert not client.charge_time(1 << 60, 0)


def test_the_pause_for_used_time_is_a_second_at_most() -> None:
    quotas = ClientQuotas()
    put(quotas, {"user": "u"}, 50, REQUEST)
    client = quotas.of("u", "c")
    assert not client.charge_time(5_000_000_000, 0), "half of the loop, ten seconds long"
    assert client.charge_time(100_000_000, 0)
    assert client.request_debt_ms(0) == 201
    client.charge_time(5_000_000_000, 0)
    assert client.request_debt_ms(0) == 1_000


def test_a_fetch_is_limited_by_what_is_left_and_by_a_second_at_least() -> None:
    quotas = ClientQuotas(consumer_default=RATE)
    client = quotas.of("u", "c")
    assert client.fetch_bytes_max(0) == 10 * RATE
    client.use(FETCH, 7 * RATE, 0)
    assert client.fetch_bytes_max(0) == 3 * RATE
    client.use(FETCH, 3 * RATE, 0)
    assert client.fetch_bytes_max(0) == RATE


def test_a_client_that_connects_again_still_has_its_debt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buckets, "BUCKETS_MAX", 10)
    monkeypatch.setattr(client_quotas, "CLIENTS_MAX", 10)
    quotas = ClientQuotas(producer_default=RATE)
    quotas.of("u", "debtor").use(PRODUCE, 100 * RATE, 0)
    for number in range(50):
        quotas.of("u", f"client {number}").use(PRODUCE, 1, number)
        quotas.of("u", "debtor").use(PRODUCE, 1, number)
    assert quotas.of("u", "debtor").debt_ms(PRODUCE, 50) > 89_000
    assert len(quotas._clients) == 10
    assert len(quotas._tables[PRODUCE]) == 10


def test_a_bucket_that_is_held_is_never_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "BUCKETS_MAX", 2)
    monkeypatch.setattr(client_quotas, "CLIENTS_MAX", 2)
    quotas = ClientQuotas(producer_default=RATE)
    held = quotas.of("u", "held")
    held.use(PRODUCE, 20 * RATE, 0)
    for number in range(5):
        quotas.of("u", f"client {number}").use(PRODUCE, 1, 0)
    again = quotas.of("u", "held")
    assert again is not held
    assert again.bucket(PRODUCE, 0) is held.bucket(PRODUCE, 0)


def test_connections_are_limited_by_address() -> None:
    quotas = ClientQuotas()
    assert quotas.connection_bucket("10.0.0.1", 0) is None
    quotas.change(entity_of({"ip": None}), "connection_creation_rate", 2.0)
    quotas.change(entity_of({"ip": "10.0.0.1"}), "connection_creation_rate", 1.0)
    one, other = (quotas.connection_bucket(f"10.0.0.{n}", 0) for n in (1, 2))
    assert one is not None
    assert other is not None
    assert (one.rate, other.rate) == (1.0, 2.0)
    assert quotas.connection_bucket("::ffff:10.0.0.1", 0) is one
    assert quotas.limits_connections
    assert not quotas.limits, "requests are not concerned"


def test_addresses_are_compared_in_one_form() -> None:
    assert address_of("::FFFF:10.0.0.1") == "10.0.0.1"
    assert address_of("0:0::1") == "::1"
    assert address_of("a name") == "a name"
