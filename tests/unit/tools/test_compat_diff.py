"""Tests the comparison of two brokers' responses, and its dialogues."""

import time
from dataclasses import replace
from typing import Any

import pytest

from barnabas.handlers.api_versions import TELEMETRY
from barnabas.handlers.registry import SERVED
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from barnabas.testing.broker import Broker
from tests.support.talk.requests import batch
from tools.compat_diff.brokers import compared_properties, compared_settings, warm_up
from tools.compat_diff.comparing import ABSENT, Found, Pairs, compare
from tools.compat_diff.dialogues import WRITTEN
from tools.compat_diff.drawing import drawn
from tools.compat_diff.explained import TABLE, names_twice
from tools.compat_diff.explaining import DOCUMENT, Explained, check_sentences, explanation
from tools.compat_diff.playing import Difference, Player, proceed
from tools.compat_diff.report import grouped, shown
from tools.compat_diff.steps import Answer, Ask, Raw, Scene, Talk, brief

ONE, OTHER = bytes([1] * 16), bytes([2] * 16)


def created(*topics: tuple[str, bytes], error: int = 0, text: str | None = None) -> Message:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=n, topic_id=i, error_code=error, error_message=text)
            for n, i in topics
        ]
    )


def paths(kafka: Message, barnabas: Message, version: int = 7) -> list[Found]:
    return compare(kafka, barnabas, version, Pairs("cd0.1-"))


def test_ids_are_paired_and_stay_so() -> None:
    pairs = Pairs()
    assert pairs.match(b"kafka", b"barnabas")
    assert pairs.match(b"kafka", b"barnabas")
    assert not pairs.match(b"kafka", b"another")
    assert not pairs.match(b"another", b"barnabas")


@pytest.mark.parametrize("nothing", [None, "", 0, -1, bytes(16)])
def test_no_id_meets_no_id_alone(nothing: object) -> None:
    assert Pairs().match(nothing, nothing)
    assert not Pairs().match(nothing, 7)


def test_order_and_ids_make_no_difference() -> None:
    assert paths(created(("a", ONE), ("b", OTHER)), created(("b", ONE), ("a", OTHER))) == []


def test_an_error_hides_what_follows_from_it() -> None:
    found = paths(created(("a", bytes(16)), error=36), created(("a", ONE)))
    assert found == [Found("topics[].error_code", 36, 0)]


def test_texts_are_not_compared() -> None:
    assert paths(created(("a", ONE), text="so"), created(("a", ONE), text=None)) == []


def test_what_one_broker_has_alone() -> None:
    (found,) = paths(created(("a", ONE), ("b", OTHER)), created(("a", ONE)))
    assert (found.path, found.barnabas) == ("topics[+]", ABSENT)
    assert "'b'" in str(found.kafka)


def test_topics_of_other_dialogues_are_left_out() -> None:
    mine = MetadataResponseTopic(name="cd0.1-a")
    theirs = MetadataResponseTopic(name="cd0.2-a")
    assert paths(MetadataResponse(topics=[mine, theirs]), MetadataResponse(topics=[mine]), 9) == []


def listed(timestamp: int) -> Message:
    partition = ListOffsetsPartitionResponse(timestamp=timestamp)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="a", partitions=[partition])])


def test_current_times_are_equal_and_others_are_not() -> None:
    now = int(time.time() * 1000)
    assert paths(listed(now), listed(now + 5)) == []
    assert [f.path for f in paths(listed(5), listed(6))] == ["topics[].partitions[].timestamp"]


def fetched(*parts: tuple[int, bytes]) -> Message:
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="a", partitions=[PartitionData(partition_index=n, records=r)]
            )
            for n, r in parts
        ]
    )


def test_records_are_compared_batch_by_batch() -> None:
    one, other = bytes(batch(2)), bytes(batch(2, value=b"w"))
    assert paths(fetched((0, one), (1, one)), fetched((1, one), (0, one)), 12) == []
    (found,) = paths(fetched((0, one)), fetched((0, other)), 12)
    assert found.path == "responses[].partitions[].records[].records"
    (found,) = paths(fetched((0, one)), fetched((0, one + one)), 12)
    assert found == Found("responses[].partitions[].records.batches", 1, 2)


def test_every_explanation_is_in_the_document() -> None:
    assert check_sentences(TABLE, DOCUMENT.read_text()) == []
    lost = replace(TABLE[0], sentence="Nothing is ever different.")
    assert check_sentences([lost], DOCUMENT.read_text()) == [lost.sentence]


def test_an_explanation_fits_what_it_names() -> None:
    entry = Explained("s", "Fetch", r".*\.error_code", lambda found, _: found.kafka == -1)

    def fits(api: str, path: str, kafka: object) -> bool:
        return explanation([entry], api, 4, None, Found(path, kafka, 0)) is entry

    assert fits("Fetch", "a.error_code", -1)
    assert not fits("Produce", "a.error_code", -1)
    assert not fits("Fetch", "a.offset", -1)
    assert not fits("Fetch", "a.error_code", 3)


def test_some_explanations_are_for_chance_alone() -> None:
    entry = Explained("s", ".*", drawn_only=True)
    found = Found("error_code", 1, 2)
    assert explanation([entry], "Fetch", 4, None, found) is None
    assert explanation([entry], "Fetch", 4, None, found, drawn=True) is entry


@pytest.mark.parametrize(("names", "twice"), [(["a", "b"], False), (["a", "a"], True)])
def test_a_name_given_twice_is_found(names: list[str], twice: bool) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    assert names_twice(Found("", 0, 0), request) == twice


def difference(version: int, kafka: object, **others: Any) -> Difference:
    values: dict[str, Any] = {
        "dialogue": "d",
        "step": 1,
        "api": "Fetch",
        "version": version,
        "found": Found("topics[].error_code", kafka, 0),
        "request": "r",
        "explained": None,
    }
    return Difference(**{**values, **others})


def test_differences_of_one_kind_are_one_group() -> None:
    first, second = grouped(
        [difference(4, 1), difference(5, 1), difference(6, 1), difference(4, 3)]
    )
    assert (first.versions, len(first.found)) == ("4-6", 3)
    assert (second.versions, second.kafka) == ("4", "UNKNOWN_TOPIC_OR_PARTITION (3)")
    assert shown("offset", 7) == "7"


def test_requests_are_shown_without_their_defaults() -> None:
    assert brief(InitProducerIdResponse(producer_id=5)) == "InitProducerIdResponse(producer_id=5)"


def test_every_api_is_asked_in_every_version() -> None:
    asked: set[tuple[int, int]] = set()
    for number, dialogue in enumerate(WRITTEN.values()):
        asked |= _asked_in_vain(dialogue(Scene(number, 1)))
    served = {
        (key, v)
        for key, api in SERVED.items()
        if key not in TELEMETRY  # Apache Kafka serves them only with a plugin that takes metrics
        for v in range(api.low, api.high + 1)
    }
    assert served <= asked


def _asked_in_vain(talk: Talk) -> set[tuple[int, int]]:
    """Return the requests of a dialogue without a broker."""
    asked: set[tuple[int, int]] = set()
    step = next(talk, None)
    while step is not None:
        if isinstance(step, Ask | Raw):
            asked.add((step.api_key, step.version))
        step = proceed(talk, Answer(None))
    return asked


SMOKE = (
    "topics/create-v7",
    "groups/two-members-v5",
    "transactions/second-version",
    "fetch/diverging",
)


def test_a_broker_does_not_differ_from_itself() -> None:
    """Two brokers of the same kind: any difference is an error of the comparison."""
    settings = compared_settings()
    with Broker(settings=settings) as one, Broker(settings=settings) as other:
        for broker in (one, other):
            warm_up(_address(broker))
        player = Player(_address(one), _address(other), ())
        played = [player.play(n, WRITTEN[n], Scene(i, 1)) for i, n in enumerate(SMOKE)]
        played += [player.play("drawn", drawn, Scene(i, 1), strict=True) for i in (100, 101)]
    assert [d for one in played for d in one.differences] == []
    assert sum(one.answers for one in played) > 50


def _address(broker: Broker) -> tuple[str, int]:
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


def test_a_seed_draws_the_same_again() -> None:
    def requests(seed: int) -> list[str]:
        talk = drawn(Scene(1, seed))
        steps = [next(talk)]
        steps += [talk.send(Answer(None)) for _ in range(20)]
        return [brief(step.request) for step in steps if isinstance(step, Ask)]

    assert requests(1) == requests(1)
    assert requests(1) != requests(2)


def test_kafka_runs_with_its_defaults() -> None:
    kept = compared_properties("node.id=1\nlog.retention.hours=168\nnum.partitions=1")
    assert "node.id=1" in kept
    assert "log.retention" not in kept
    assert "num.partitions" not in kept
