"""Tests what clients see of replicas: leaders, the minimum ISR, nearby replicas, divergence.

The other brokers are simulated: a partition of a real node gets its replicas and leader from the
test.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.image import BrokerImage, PartitionImage
from barnabas.model.errors import ErrorCode, WireError
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.messages import fetch as messages
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.requests import batch, create_topic, fetch_request, produce, send_produce

ME, OTHER = 1, 2


@pytest.fixture(params=["handler", "fast path"])
def talk(tmp_path: Path, request: pytest.FixtureRequest) -> Dialogue:
    """A broker with a topic of two replicas, the other one on broker 2."""
    made = Dialogue(tmp_path, {"broker.id": ME, "broker.rack": "here"})
    create_topic(made, "a")
    made.fast_path = request.param == "fast path"
    place(made, isr=[ME, OTHER])
    return made


def partition_of(talk: Dialogue) -> Partition:
    return talk.node.replica("a", 0)


def place(talk: Dialogue, **changes: Any) -> None:
    """Change the partition in the image from now on."""
    image = talk.node.image
    image.brokers[OTHER] = BrokerImage(
        OTHER, 9, "", "far", 9093, "far", 9094, "there", fenced=False
    )
    before = image.topics["a"].partitions[0]
    placed = PartitionImage(
        [ME, OTHER], ME, before.leader_epoch, before.isr, partition_epoch=before.partition_epoch + 1
    )
    image.topics["a"].partitions[0] = placed = replace(placed, **changes)
    talk.node.replicas.apply(partition_of(talk), placed)
    talk.settle()


def lose_lead(talk: Dialogue) -> None:
    epoch = partition_of(talk).leader_epoch + 1
    place(talk, leader=OTHER, leader_epoch=epoch, isr=[OTHER, ME])


def other_fetches(talk: Dialogue, offset: int) -> None:
    partition = partition_of(talk)
    talk.node.replicas.fetched(partition, OTHER, 9, offset)
    talk.settle()


def produced(exchange: Exchange) -> Any:
    ((result,),) = [topic.partition_responses for topic in exchange.answer.responses]
    return result


def fetched(answer: Any) -> Any:
    ((result,),) = [topic.partitions for topic in answer.responses]
    return result


def test_acks_all_waits_for_the_other_replica_and_acks_one_does_not(talk: Dialogue) -> None:
    waiting = send_produce(talk, "a", batch(1), acks=-1)
    assert produce(talk, "a", batch(1), acks=1).error_code == 0
    assert waiting.waiting
    other_fetches(talk, 1)
    assert (produced(waiting).error_code, produced(waiting).base_offset) == (0, 0)


def test_too_few_in_sync_refuse_acks_all_and_accept_acks_one(talk: Dialogue) -> None:
    partition = partition_of(talk)
    partition.configure(replace(partition.config, min_insync_replicas=2))
    place(talk, isr=[ME])
    assert produce(talk, "a", batch(1), acks=-1).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.end_offset == 0
    assert produce(talk, "a", batch(1), acks=1).error_code == 0
    assert partition.log.end_offset == 1


def test_what_comes_behind_a_batch_that_too_few_could_take_is_no_disorder(talk: Dialogue) -> None:
    partition = partition_of(talk)
    partition.configure(replace(partition.config, min_insync_replicas=2))
    place(talk, isr=[ME])

    def code(sequence: int, acks: int = -1) -> int:
        sent = batch(1, producer=(5, 0, sequence))
        refused: int = produce(talk, "a", sent, acks=acks).error_code
        return refused

    assert code(0) == ErrorCode.NOT_ENOUGH_REPLICAS
    place(talk, isr=[ME, OTHER])
    assert code(0, acks=1) == 0
    place(talk, isr=[ME])
    assert code(1) == ErrorCode.NOT_ENOUGH_REPLICAS
    place(talk, isr=[ME, OTHER])
    assert code(2, acks=1) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert [code(1, acks=1), code(2, acks=1)] == [0, 0]
    assert code(7, acks=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_leader_does_not_take_what_another_refused_for_disorder(talk: Dialogue) -> None:
    def code(sequence: int) -> int:
        sent = batch(1, producer=(5, 0, sequence))
        refused: int = produce(talk, "a", sent, acks=1).error_code
        return refused

    assert [code(sequence) for sequence in range(7)] == [0] * 7
    assert code(9) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    lose_lead(talk)
    place(talk, leader=ME, leader_epoch=partition_of(talk).leader_epoch + 1, isr=[ME, OTHER])
    assert code(9) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert code(0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # that was long ago
    talk.pass_time(60_000)
    assert code(9) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [code(7), code(8), code(9)] == [0, 0, 0]


def test_too_few_in_the_end_are_reported_at_the_timeout(talk: Dialogue) -> None:
    partition = partition_of(talk)
    partition.configure(replace(partition.config, min_insync_replicas=2))
    waiting = send_produce(talk, "a", batch(1), acks=-1)
    place(talk, isr=[ME])
    assert waiting.waiting
    talk.pass_time(60_000)
    assert produced(waiting).error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_waiting_requests_learn_of_another_leader_at_once(talk: Dialogue) -> None:
    waiting = send_produce(talk, "a", batch(1), acks=-1)
    lose_lead(talk)
    result = produced(waiting)
    assert (result.error_code, result.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert_names_the_other(result, waiting.answer, partition_of(talk).leader_epoch)


def test_a_late_producer_gets_the_new_leader(talk: Dialogue) -> None:
    lose_lead(talk)
    refused = send_produce(talk, "a", batch(1))
    assert produced(refused).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert_names_the_other(produced(refused), refused.answer, partition_of(talk).leader_epoch)


def assert_names_the_other(result: Any, answer: Any, epoch: int) -> None:
    leader = result.current_leader
    assert (leader.leader_id, leader.leader_epoch) == (OTHER, epoch)
    (endpoint,) = answer.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (OTHER, "far", 9093)
    assert endpoint.rack == "there"


def test_a_consumer_with_an_old_epoch_gets_the_leader(talk: Dialogue) -> None:
    epoch = partition_of(talk).leader_epoch
    lose_lead(talk)
    topic_id = talk.node.image.topics["a"].topic_id
    answer = talk.ask(fetch_request(topic_id, leader_epoch=epoch), 16)
    assert fetched(answer).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert_names_the_other(fetched(answer), answer, epoch + 1)


def test_a_follower_serves_consumers_that_know_of_followers(talk: Dialogue) -> None:
    produce(talk, "a", batch(3), acks=1)
    other_fetches(talk, 3)
    lose_lead(talk)
    assert fetched(talk.ask(fetch_request("a"), 11)).records != b""
    assert fetched(talk.ask(fetch_request("a"), 10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    ahead = fetched(talk.ask(fetch_request("a", 4), 11))
    assert ahead.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, (
        "the record may be there, but is not here yet"
    )


def test_a_consumer_elsewhere_is_sent_to_the_nearest_replica(talk: Dialogue) -> None:
    produce(talk, "a", batch(3), acks=1)
    other_fetches(talk, 3)
    request = fetch_request("a", max_wait_ms=500)
    request.rack_id = "there"
    result = fetched(talk.ask(request, 11))
    assert (result.preferred_read_replica, result.records) == (OTHER, b"")
    request.rack_id = "here"
    result = fetched(talk.ask(request, 11))
    assert (result.preferred_read_replica, len(result.records) > 0) == (-1, True)


def test_a_consumer_that_read_truncated_records_gets_the_diverging_epoch(talk: Dialogue) -> None:
    produce(talk, "a", batch(3), acks=1)
    other_fetches(talk, 3)
    epoch = partition_of(talk).leader_epoch
    place(talk, leader_epoch=epoch + 2)
    produce(talk, "a", batch(3), acks=1)
    other_fetches(talk, 6)
    request = fetch_request("a", 5)
    request.topics[0].partitions[0].last_fetched_epoch = epoch + 1
    diverging = fetched(talk.ask(request, 12)).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (epoch, 3)
    request.topics[0].partitions[0].last_fetched_epoch = epoch + 2
    assert fetched(talk.ask(request, 12)).diverging_epoch.epoch == -1


def test_a_follower_is_not_served_where_clients_are(talk: Dialogue) -> None:
    topic_id = talk.node.image.topics["a"].topic_id
    request = fetch_request(topic_id)
    request.replica_state = messages.ReplicaState(replica_id=OTHER, replica_epoch=9)
    with pytest.raises(WireError, match="listener for brokers"):
        talk.send(request, 18)
