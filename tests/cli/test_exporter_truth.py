"""Tests what `barnabas exporter` says of groups against what the test knows of them."""

import time
from collections.abc import Iterator
from itertools import dropwhile, islice, pairwise
from typing import NamedTuple
from uuid import uuid4

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.testing.waiting import eventually
from tests.support.exporter_pages import PATIENCE_S, Samples, exporting, samples

pytestmark = [pytest.mark.compat, pytest.mark.slow]

LAG = "kafka_consumergroup_group_max_lag_seconds"
ROUNDING_S = 0.05
ROUNDS_MAX = 60


class Page(NamedTuple):
    """The page after a collection."""

    taken_s: float
    took_s: float
    found: Samples

    def of_group(self, name: str, group: str) -> float | None:
        """Return the value of a metric for a group; None if it is unknown."""
        values = [each.value for each in self.found.get(name, []) if each.labels["group"] == group]
        return values[0] if values else None

    def status(self, group: str) -> str:
        """Return the status of a group."""
        (found,) = [
            each.labels["status"]
            for each in self.found["barnabas_group_status"]
            if each.labels["group"] == group
        ]
        return str(found)


def pages(url: str) -> Iterator[Page]:
    """Yield a page after each collection that is seen."""
    last_s = 0.0

    def new() -> Samples | None:
        found = samples(url)
        taken = found.get("barnabas_exporter_last_collection_timestamp_seconds")
        return found if taken and taken[0].value > last_s and "kafka_brokers" in found else None

    while True:
        found = eventually(new, PATIENCE_S)
        assert found is not None
        last_s = found["barnabas_exporter_last_collection_timestamp_seconds"][0].value
        yield Page(last_s, found["barnabas_exporter_collection_seconds"][0].value, found)


def send(producer: Producer, topic: str, count: int = 1) -> float:
    """Send records; return the time before the first."""
    sent_s = time.time()
    for _ in range(count):
        producer.produce(topic, b"v", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    return sent_s


def commit(admin: AdminClient, group: str, topic: str, offset: int) -> None:
    request = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])]
    admin.alter_consumer_group_offsets(request, request_timeout=PATIENCE_S)[group].result()


def test_lag_in_seconds_is_right_within_one_interval(
    bootstrap: str, admin: AdminClient, topic: str, group: str
) -> None:
    """Also when producers have stopped."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    commit(admin, group, topic, 0)
    with exporting(bootstrap) as url:
        coming = pages(url)
        seen = [next(page for page in coming if page.of_group(LAG, group) == 0)]
        sent_s = []
        for page in islice(coming, 4):  # a record for each collection
            seen.append(page)
            sent_s.append(send(producer, topic))
        commit(admin, group, topic, 2)
        committed_s = time.time()
        seen.append(next(coming))
        after = dropwhile(lambda page: page.taken_s <= committed_s, coming)
        for page in islice(after, 5):
            seen.append(page)
            interval_s = max(last.taken_s - first.taken_s for first, last in pairwise(seen))
            truth_s = page.taken_s - sent_s[2]
            found = page.of_group(LAG, group)
            assert found is not None
            assert truth_s - interval_s - ROUNDING_S <= found
            assert found <= truth_s + max(each.took_s for each in seen) + ROUNDING_S
        commit(admin, group, topic, 4)
        assert any(page.of_group(LAG, group) == 0 for page in islice(coming, ROUNDS_MAX))


def test_groups_have_the_status_of_what_they_do(
    bootstrap: str, admin: AdminClient, topic: str
) -> None:
    ok, behind, stopped = (f"{word}-{uuid4().hex}" for word in ("ok", "behind", "stopped"))
    wanted = {ok: "ok", behind: "behind", stopped: "stopped"}
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    with exporting(bootstrap) as url:
        found = {}
        for number, page in enumerate(islice(pages(url), ROUNDS_MAX), 1):
            send(producer, topic, 10)
            commit(admin, ok, topic, 10 * number)
            commit(admin, behind, topic, number)
            commit(admin, stopped, topic, 5)
            if number > 2:
                found = {group: page.status(group) for group in wanted}
            if found == wanted:
                break
        assert found == wanted
