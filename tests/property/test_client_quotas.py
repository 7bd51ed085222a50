"""Client quotas against a simple model, and pacing against the rate that it is for."""

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.metadata.security_image import entity_of
from barnabas.security.buckets import WINDOW_S, Bucket
from barnabas.security.client_quotas import ClientQuotas, QuotaKind

USERS = ("alice", "bob")
CLIENTS = ("one", "two")
PRODUCE = QuotaKind.PRODUCE
few = settings(max_examples=200, deadline=None, derandomize=True)

names = st.fixed_dictionaries(
    {},
    optional={
        "user": st.sampled_from([None, *USERS]),
        "client-id": st.sampled_from([None, *CLIENTS]),
    },
).filter(bool)
changes = st.lists(st.tuples(names, st.one_of(st.none(), st.integers(1, 1_000))), max_size=25)


def naive(
    present: dict[frozenset[tuple[str, str | None]], int], user: str, client_id: str
) -> tuple[int, str, str] | None:
    """Return the rate and the bucket of a client, as the documentation has it."""
    order: list[dict[str, str | None]] = [
        {"user": user, "client-id": client_id},
        {"user": user, "client-id": None},
        {"user": user},
        {"user": None, "client-id": client_id},
        {"user": None, "client-id": None},
        {"user": None},
        {"client-id": client_id},
        {"client-id": None},
    ]
    for entity in order:
        rate = present.get(frozenset(entity.items()))
        if rate is not None:
            owner = user if "user" in entity else ""
            return rate, owner, client_id if "client-id" in entity else ""
    return None


@few
@given(changes)
def test_the_quota_is_the_one_that_the_model_finds(
    script: list[tuple[dict[str, str | None], int | None]],
) -> None:
    quotas = ClientQuotas()
    clients = {(user, client): quotas.of(user, client) for user in USERS for client in CLIENTS}
    present: dict[frozenset[tuple[str, str | None]], int] = {}
    for entity, value in script:
        key = frozenset(entity.items())
        if value is None:
            present.pop(key, None)
        else:
            present[key] = value
        quotas.change(entity_of(entity), "producer_byte_rate", value)
        found = {who: client.bucket(PRODUCE, 0) for who, client in clients.items()}
        wanted = {who: naive(present, *who) for who in clients}
        for who, bucket in found.items():
            expected = wanted[who]
            assert (None if bucket is None else bucket.rate) == (expected and expected[0])
            for other, another in found.items():
                if bucket is not None and another is not None:
                    shared = (expected or ())[1:] == (wanted[other] or ())[1:]
                    assert (bucket is another) == shared
        assert quotas.limits == bool(present)


@few
@given(
    st.integers(1, 100_000),
    st.lists(st.tuples(st.integers(0, 500_000), st.integers(0, 3_000)), min_size=1, max_size=60),
)
def test_a_client_that_pauses_keeps_to_its_rate(rate: int, requests: list[tuple[int, int]]) -> None:
    """What is used before the last pause ends is never more than the rate allows."""
    bucket, now_ms, used = Bucket(rate, 0), 0, 0
    for size, thinking_ms in requests:
        now_ms += thinking_ms
        used += size
        now_ms += bucket.use(size, now_ms)
        assert used <= rate * WINDOW_S + rate * now_ms / 1000 + 1e-6 * used


@few
@given(st.integers(100, 100_000), st.integers(1, 50))
def test_a_client_that_sends_all_the_time_is_not_slower_than_its_rate(
    rate: int, parts: int
) -> None:
    """Pauses are rounded up to whole milliseconds, and no more is lost."""
    bucket, now_ms, used = Bucket(rate, 0), 0, 0
    size = rate * WINDOW_S // parts + 1
    for _ in range(4 * parts):
        used += size
        now_ms += bucket.use(size, now_ms)
    assert used >= rate * WINDOW_S + rate * (now_ms - 4 * parts) / 1000 - 1
