"""Tests topics that are created, grown and deleted, and subscriptions by pattern."""

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from tests.support.talk.consumer_talk import ConsumerTalk


def test_new_partitions_are_assigned_with_the_next_heartbeat() -> None:
    talk = ConsumerTalk({"t": 1})
    first = talk.member("first")
    first.join(["t"])
    talk.grow_topic("t", 2)
    first.heartbeat()
    assert first.assigned == talk.slots("t")
    assert talk.group.epoch == 2


def test_a_topic_may_come_after_its_subscription() -> None:
    talk = ConsumerTalk()
    first = talk.member("first")
    first.join(["later"])
    assert first.assigned == set()
    talk.create_topic("unrelated", 1)
    first.heartbeat()
    assert talk.group.epoch == 1
    talk.create_topic("later", 2)
    first.heartbeat()
    assert first.assigned == talk.slots("later")


def test_a_topic_that_is_deleted_and_recreated_is_another() -> None:
    talk = ConsumerTalk({"t": 2})
    first = talk.member("first")
    first.join(["t"])
    first.follow_assignment()
    first.heartbeat()
    talk.delete_topic("t")
    first.heartbeat()
    assert first.assigned == set()
    first.follow_assignment()
    talk.create_topic("t", 1)
    first.heartbeat()
    assert first.assigned == talk.slots("t")
    assert talk.group.state == "Stable"


def test_a_topic_that_changed_while_there_was_no_coordinator_is_noticed() -> None:
    talk = ConsumerTalk({"t": 1})
    first = talk.member("first")
    first.join(["t"])
    talk.grow_topic("t")
    talk.restart()
    first.heartbeat()
    assert first.assigned == talk.slots("t")


def test_a_restart_alone_moves_nothing() -> None:
    talk = ConsumerTalk({"t": 1, "tt": 1})
    first = talk.member("first")
    first.join(["t"], regex="t+")
    first.follow_assignment()
    first.heartbeat()
    talk.restart()
    since = len(talk.log)
    first.heartbeat()
    assert talk.log[since:] == []


def test_a_pattern_finds_topics_that_are_there_and_that_come() -> None:
    talk = ConsumerTalk({"logs-a": 1, "logs-b": 2, "other": 1, "__consumer_offsets": 3})
    first = talk.member("first")
    first.join(regex=r"logs-.*|__.*")
    assert first.assigned == talk.slots("logs-a", "logs-b")
    assert talk.group.subscribes_to("logs-a")
    assert not talk.group.subscribes_to("other")
    talk.create_topic("logs-c", 1)
    first.heartbeat()
    assert first.assigned == talk.slots("logs-a", "logs-b", "logs-c")
    talk.delete_topic("logs-a")
    first.heartbeat()
    assert first.assigned == talk.slots("logs-b", "logs-c")


def test_names_and_a_pattern_add_up() -> None:
    talk = ConsumerTalk({"a": 1, "b": 1, "c": 1})
    first = talk.member("first")
    first.join(["a"], regex="[ab]")
    assert first.assigned == talk.slots("a", "b")


def test_matches_of_a_pattern_are_stored_while_a_member_has_it() -> None:
    talk = ConsumerTalk({"a": 1, "b": 1})
    first, second = talk.member("first"), talk.member("second")
    first.join(regex="a")
    second.join(regex="b")
    talk.settle([first, second])
    stored = {
        entry.key.regular_expression: entry.value
        for entry in talk.written(0)
        if isinstance(entry.key, ConsumerGroupRegularExpressionKey)
    }
    assert stored == {
        name: ConsumerGroupRegularExpressionValue(topics=[name], timestamp=talk.wall_ms)
        for name in "ab"
    }
    second.leave()
    assert set(talk.group.regexes) == {"a"}
    first.subscription = {"subscribed_topic_names": ["b"], "subscribed_topic_regex": ""}
    first.heartbeat(full=True)
    assert talk.group.regexes == {}
    talk.settle([first])
    assert first.owned == talk.slots("b")


@pytest.mark.parametrize("pattern", ["(", "a**", "(a)\\1", "(?=a)b", "[z-a]", "a{2,1}"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    talk = ConsumerTalk({"a": 1})
    with pytest.raises(ApiError) as refused:
        talk.member("first").join(regex=pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert talk.log == []


def test_patterns_are_matched_again_after_a_while() -> None:
    settings = GroupSettings(consumer_regex_refresh_interval_ms=10_000)
    talk = ConsumerTalk({"a": 1}, settings)
    first = talk.member("first")
    first.join(regex="a|b")
    first.heartbeat()
    talk.create_topic("b", 1)
    talk.group.topics_seen = talk.machine.consumer._topic_changes  # as if it had not been notified
    first.heartbeat()
    assert first.assigned == talk.slots("a")
    talk.pass_time(10_000)
    first.heartbeat()
    assert first.assigned == talk.slots("a", "b")
