"""DescribeClientQuotas and AlterClientQuotas, and what quotas do to requests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.controller.client_quota_decisions import alter
from barnabas.handlers.registry import SERVED
from barnabas.metadata.image import Image
from barnabas.model.callers import Principal, unauthenticated
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, fetch_request, produce, send_produce

KIB = 1024
DESCRIBE, ALTER = 48, 49
Entity = Mapping[str, str | None]


def entry(entity: Entity, values: Mapping[str, float | None]) -> AlterClientQuotasRequestEntryData:
    return AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ],
    )


def set_quota(talk: Dialogue, entity: Entity, **values: float | None) -> tuple[int, str | None]:
    request = AlterClientQuotasRequest(entries=[entry(entity, values)])
    (result,) = talk.ask(request).entries
    return result.error_code, result.error_message


def described(talk: Dialogue, *components: ComponentData, strict: bool = False) -> Any:
    return talk.ask(DescribeClientQuotasRequest(components=list(components), strict=strict))


def entities(answer: Any) -> list[dict[str, str | None]]:
    return [{part.entity_type: part.entity_name for part in each.entity} for each in answer.entries]


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    return Dialogue(tmp_path)


def test_what_was_set_is_described(talk: Dialogue) -> None:
    assert set_quota(talk, {"user": "alice"}, producer_byte_rate=1000.0) == (0, None)
    (found,) = described(talk).entries
    assert [(part.entity_type, part.entity_name) for part in found.entity] == [("user", "alice")]
    assert [(each.key, each.value) for each in found.values] == [("producer_byte_rate", 1000.0)]
    assert set_quota(talk, {"user": "alice"}, producer_byte_rate=None) == (0, None)
    assert described(talk).entries == []


def test_quotas_outlive_a_restart(talk: Dialogue) -> None:
    set_quota(talk, {"client-id": "dialogue"}, request_percentage=12.5)
    talk.restart()
    assert entities(described(talk)) == [{"client-id": "dialogue"}]
    assert talk.node.quotas.times_requests


@pytest.mark.parametrize("version", [0, 1])
def test_both_versions_are_served(talk: Dialogue, version: int) -> None:
    request = AlterClientQuotasRequest(
        entries=[entry({"user": None, "client-id": None}, {"consumer_byte_rate": 5.0})]
    )
    (result,) = talk.ask(request, version).entries
    assert result.error_code == 0
    answer = talk.ask(DescribeClientQuotasRequest(components=[], strict=False), version)
    assert entities(answer) == [{"client-id": None, "user": None}]


def test_a_dry_run_changes_nothing(talk: Dialogue) -> None:
    request = AlterClientQuotasRequest(
        entries=[entry({"user": "a"}, {"producer_byte_rate": 5.0})], validate_only=True
    )
    assert talk.ask(request).entries[0].error_code == 0
    assert described(talk).entries == []


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ({}, {"producer_byte_rate": 1.0}),
        ({"group": "g"}, {"producer_byte_rate": 1.0}),
        ({"user": ""}, {"producer_byte_rate": 1.0}),
        ({"user": "a", "ip": "10.0.0.1"}, {"connection_creation_rate": 1.0}),
        ({"ip": "no address"}, {"connection_creation_rate": 1.0}),
        ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1.0}),
        ({"user": "a"}, {"connection_creation_rate": 1.0}),
        ({"user": "a"}, {"speed": 1.0}),
        ({"user": "a"}, {"producer_byte_rate": -1.0}),
        ({"user": "a"}, {"producer_byte_rate": 0.0}),
        ({"user": "a"}, {"producer_byte_rate": 1.5}),
        ({"user": "a"}, {"request_percentage": float("nan")}),
        ({"user": "a"}, {"request_percentage": float("inf")}),
    ],
)
def test_what_is_wrong_is_refused(talk: Dialogue, entity: Entity, values: dict[str, float]) -> None:
    code, message = set_quota(talk, entity, **values)
    assert code == ErrorCode.INVALID_REQUEST
    assert message
    assert described(talk).entries == []


def test_a_wrong_entry_does_not_affect_the_others(talk: Dialogue) -> None:
    request = AlterClientQuotasRequest(
        entries=[
            entry({"user": "a"}, {"producer_byte_rate": 5.0, "speed": 5.0}),
            entry({"user": "b"}, {"producer_byte_rate": 5.0}),
            entry({"user": "c"}, {"producer_byte_rate": 5.0}),
            entry({"user": "c"}, {"consumer_byte_rate": 5.0}),
        ]
    )
    codes = [each.error_code for each in talk.ask(request).entries]
    invalid = ErrorCode.INVALID_REQUEST
    assert codes == [invalid, 0, invalid, invalid]
    assert entities(described(talk)) == [{"user": "b"}]


def test_an_entity_or_a_quota_that_is_named_twice_is_refused(talk: Dialogue) -> None:
    doubled = entry({"user": "a"}, {"producer_byte_rate": 5.0})
    doubled.entity = doubled.entity * 2
    twice = entry({"user": "b"}, {"producer_byte_rate": 5.0})
    twice.ops = twice.ops * 2
    answer = talk.ask(AlterClientQuotasRequest(entries=[doubled, twice]))
    assert [each.error_code for each in answer.entries] == [ErrorCode.INVALID_REQUEST] * 2


def test_an_older_feature_level_says_what_to_do() -> None:
    (found,) = alter(Image(feature_level=1), [entry({"user": "a"}, {"producer_byte_rate": 5.0})])
    assert found.error is not None
    assert found.error.code is ErrorCode.UNSUPPORTED_VERSION
    assert "barnabas cluster upgrade" in (found.error.message or "")
    assert found.records == []


EXACT, DEFAULT, ANY = 0, 1, 2


def component(kind: str, match_type: int, match: str | None = None) -> ComponentData:
    return ComponentData(entity_type=kind, match_type=match_type, match=match)


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, 5),
        ([], True, 0),
        ([component("user", EXACT, "a")], False, 2),
        ([component("user", EXACT, "a")], True, 1),
        ([component("user", DEFAULT)], False, 1),
        ([component("user", ANY)], False, 3),
        ([component("user", ANY)], True, 2),
        ([component("user", ANY), component("client-id", EXACT, "c")], True, 1),
        ([component("client-id", ANY)], False, 2),
        ([component("ip", ANY)], False, 1),
        ([component("user", EXACT, "nobody")], False, 0),
    ],
)
def test_filters(talk: Dialogue, components: list[ComponentData], strict: bool, found: int) -> None:
    for entity in ({"user": "a"}, {"user": "a", "client-id": "c"}, {"user": None}):
        set_quota(talk, entity, producer_byte_rate=1.0)
    set_quota(talk, {"client-id": None}, producer_byte_rate=1.0)
    set_quota(talk, {"ip": "10.0.0.1"}, connection_creation_rate=1.0)
    assert len(described(talk, *components, strict=strict).entries) == found


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([component("", ANY)], ErrorCode.INVALID_REQUEST),
        ([component("user", ANY), component("user", DEFAULT)], ErrorCode.INVALID_REQUEST),
        ([component("user", EXACT)], ErrorCode.INVALID_REQUEST),
        ([component("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([component("user", ANY, "a")], ErrorCode.INVALID_REQUEST),
        ([component("user", 3)], ErrorCode.INVALID_REQUEST),
        ([component("user", ANY), component("ip", ANY)], ErrorCode.INVALID_REQUEST),
        ([component("group", ANY)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_wrong_filters(talk: Dialogue, components: list[ComponentData], code: ErrorCode) -> None:
    answer = described(talk, *components)
    assert (answer.error_code, answer.entries) == (code, None)


# --- what quotas do ---


def test_a_quota_is_in_force_at_once_and_gone_at_once(talk: Dialogue) -> None:
    create_topic(talk, "a")
    assert send_produce(talk, "a", batch(value=bytes(200 * KIB))).throttle_ms == 0
    set_quota(talk, {"client-id": "dialogue"}, producer_byte_rate=10.0 * KIB)
    over = send_produce(talk, "a", batch(value=bytes(200 * KIB)))
    assert 9_900 < over.throttle_ms < 10_200
    set_quota(talk, {"client-id": "dialogue"}, producer_byte_rate=None)
    assert send_produce(talk, "a", batch(value=bytes(200 * KIB))).throttle_ms == 0


def test_the_fast_path_charges_as_the_handler_does(tmp_path: Path) -> None:
    answers = []
    for fast in (False, True):
        talk = Dialogue(tmp_path / str(fast))
        create_topic(talk, "a")
        set_quota(talk, {"user": None}, producer_byte_rate=10.0 * KIB)
        talk.fast_path = fast
        exchanges = [send_produce(talk, "a", batch(value=bytes(60 * KIB))) for _ in range(3)]
        answers.append([(each.content, each.throttle_ms) for each in exchanges])
    slow, quick = ([pause for _, pause in each] for each in answers)
    assert slow == quick
    assert [pause > 0 for pause in slow] == [False, True, True]
    assert [content for content, _ in answers[0]][1:] != []


@pytest.mark.parametrize("version", [7, 8, 9, 12, 13])
def test_the_fast_path_tells_the_pause_in_every_version(tmp_path: Path, version: int) -> None:
    talk = Dialogue(tmp_path, {"performance.producer_quota": "1KB"})
    topic_id = create_topic(talk, "a")
    talk.fast_path = True
    topic = topic_id if version >= 13 else "a"
    over = send_produce(talk, topic, batch(value=bytes(50 * KIB)), version=version)
    assert over.answer.throttle_time_ms == over.throttle_ms > 39_000
    (response,) = over.answer.responses
    assert response.partition_responses[0].error_code == 0


def test_a_pause_is_shorter_by_the_time_that_the_answer_waited(tmp_path: Path) -> None:
    for fast in (False, True):
        talk = Dialogue(tmp_path / str(fast), {"performance.producer_quota": "1KB"})
        create_topic(talk, "a")
        talk.fast_path, talk.hold_syncs = fast, True
        over = send_produce(talk, "a", batch(value=bytes(20 * KIB)))
        assert over.waiting
        talk.pass_time(4_000)
        talk.release_syncs()
        assert 6_000 < over.answer.throttle_time_ms < 7_000, fast
        assert over.throttle_ms == over.answer.throttle_time_ms


def test_clients_of_a_user_share_its_quota(talk: Dialogue) -> None:
    create_topic(talk, "a")
    set_quota(talk, {"user": "alice"}, producer_byte_rate=1.0 * KIB)
    talk.caller = unauthenticated("test")
    assert send_produce(talk, "a", batch(value=bytes(20 * KIB))).throttle_ms == 0
    alice = Principal("User", "alice")
    talk.caller = type(talk.caller)(alice, talk.caller.listener, "elsewhere")
    assert send_produce(talk, "a", batch(value=bytes(20 * KIB))).throttle_ms > 9_000
    assert talk.send(fetch_request("a"), 12).throttle_ms == 0, "other quotas are not affected"


def test_all_responses_tell_the_pause_for_used_time(talk: Dialogue) -> None:
    create_topic(talk, "a")
    produce(talk, "a", batch())
    set_quota(talk, {"client-id": "dialogue"}, request_percentage=1.0)
    quota = talk.node.quotas.of("ANONYMOUS", "dialogue")
    quota.charge_time(350_000_000, talk.node.timers.now_ms)
    told = talk.send(MetadataRequest(topics=None))
    assert told.answer.throttle_time_ms == told.throttle_ms == 1_000, "at most a second"
    assert send_produce(talk, "a", batch()).answer.throttle_time_ms == 1_000
    fetched = talk.ask(fetch_request("a"), 12)
    assert (fetched.throttle_time_ms, fetched.responses) == (1_000, [])
    assert described(talk).throttle_time_ms == 1_000
    talk.pass_time(25_001)
    assert talk.ask(MetadataRequest(topics=None)).throttle_time_ms == 0
    assert talk.ask(fetch_request("a"), 12).responses != []


def test_the_greatest_pause_counts(talk: Dialogue) -> None:
    create_topic(talk, "a")
    set_quota(talk, {"client-id": None}, request_percentage=1.0, producer_byte_rate=1_000.0)
    quota = talk.node.quotas.of("ANONYMOUS", "dialogue")
    quota.charge_time(350_000_000, talk.node.timers.now_ms)
    assert send_produce(talk, "a", batch(value=bytes(12_000))).throttle_ms > 2_000


def creation(name: str, partitions: int, *, dry: bool = False) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], validate_only=dry)


def deletion(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])


def growth(name: str, count: int) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)]
    )


EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_mutations_are_refused_topic_by_topic(talk: Dialogue) -> None:
    set_quota(talk, {"user": None}, controller_mutation_rate=1.0)
    assert talk.ask(creation("a", 15)).topics[0].error_code == 0, "ten seconds' worth, and over it"
    refused = talk.send(creation("b", 1))
    assert refused.answer.topics[0].error_code == EXCEEDED
    assert refused.answer.throttle_time_ms == refused.throttle_ms == 5_001
    assert talk.ask(growth("a", 16)).results[0].error_code == EXCEEDED
    assert talk.ask(deletion("a")).responses[0].error_code == EXCEEDED
    assert "a" in talk.node.image.topics
    talk.pass_time(5_001)
    assert talk.ask(deletion("a")).responses[0].error_code == 0
    assert talk.ask(creation("b", 1)).topics[0].error_code == EXCEEDED, "a deletion counts too"


def test_an_older_version_is_served_and_paused(talk: Dialogue) -> None:
    set_quota(talk, {"user": None}, controller_mutation_rate=1.0)
    first = talk.send(creation("a", 15), 5)
    assert (first.answer.topics[0].error_code, first.throttle_ms) == (0, 5_001)
    second = talk.send(creation("b", 1), 5)
    assert (second.answer.topics[0].error_code, second.answer.throttle_time_ms) == (0, 6_001)
    third = talk.send(growth("b", 2), 2)
    assert (third.answer.results[0].error_code, third.throttle_ms) == (0, 7_001)
    fourth = talk.send(DeleteTopicsRequest(topic_names=["b"]), 4)
    assert (fourth.answer.responses[0].error_code, fourth.throttle_ms) == (0, 9_001)


def test_a_dry_run_takes_no_permit(talk: Dialogue) -> None:
    set_quota(talk, {"user": None}, controller_mutation_rate=1.0)
    for _ in range(3):
        assert talk.ask(creation("a", 15, dry=True)).topics[0].error_code == 0
    assert talk.ask(creation("a", 15)).topics[0].error_code == 0


def test_one_request_is_served_in_part(talk: Dialogue) -> None:
    set_quota(talk, {"user": None}, controller_mutation_rate=1.0)
    topics = [CreatableTopic(name=name, num_partitions=8, replication_factor=1) for name in "abcd"]
    answer = talk.ask(CreateTopicsRequest(topics=topics))
    assert [each.error_code for each in answer.topics] == [0, 0, EXCEEDED, EXCEEDED]
    assert sorted(talk.node.image.topics) == ["a", "b"]


def test_rows_are_served() -> None:
    assert {DESCRIBE, ALTER} <= set(SERVED)
    assert SERVED[ALTER].is_forwarded
    assert not SERVED[DESCRIBE].is_forwarded
