"""Tests the configs of groups: described, altered, listed, stored, guarded."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import FeatureLevelChanged
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages import alter_configs, incremental_alter_configs
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.talk.dialogue import Dialogue

GROUP = 32
SET, DELETE, APPEND = 0, 1, 2
LOCK, RESET = "share.record.lock.duration.ms", "share.auto.offset.reset"


def alter(talk: Dialogue, group: str, *changes: tuple[str, int, str | None]) -> ErrorCode:
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=what, value=value)
        for key, what, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=GROUP, resource_name=group, configs=configs
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = talk.ask(request).responses
    return ErrorCode(answer.error_code)


def replace(talk: Dialogue, group: str, **values: str) -> ErrorCode:
    configs = [
        alter_configs.AlterableConfig(name=name.replace("_", "."), value=value)
        for name, value in values.items()
    ]
    resource = alter_configs.AlterConfigsResource(
        resource_type=GROUP, resource_name=group, configs=configs
    )
    (answer,) = talk.ask(alter_configs.AlterConfigsRequest(resources=[resource])).responses
    return ErrorCode(answer.error_code)


def describe(talk: Dialogue, group: str, *keys: str, synonyms: bool = False) -> Any:
    wanted = DescribeConfigsResource(
        resource_type=GROUP, resource_name=group, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[wanted], include_synonyms=synonyms)
    (result,) = talk.ask(request).results
    return result


def described(talk: Dialogue, group: str) -> dict[str, tuple[str, int]]:
    result = describe(talk, group)
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {each.name: (each.value, each.config_source) for each in result.configs}


def listed(talk: Dialogue) -> list[str]:
    answer = talk.ask(ListConfigResourcesRequest(resource_types=[GROUP]))
    return [each.resource_name for each in answer.config_resources]


def test_a_group_has_defaults_until_it_is_altered(talk: Dialogue) -> None:
    found = described(talk, "workers")
    assert found[LOCK] == ("30000", 5)
    assert found[RESET] == ("latest", 5)
    assert len(found) == 13
    assert alter(talk, "workers", (LOCK, SET, "20000"), (RESET, SET, "earliest")) is ErrorCode.NONE
    found = described(talk, "workers")
    assert (found[LOCK], found[RESET]) == (("20000", 8), ("earliest", 8))
    assert listed(talk) == ["workers"]
    assert alter(talk, "workers", (LOCK, DELETE, None), (RESET, DELETE, None)) is ErrorCode.NONE
    assert described(talk, "workers")[LOCK] == ("30000", 5)
    assert listed(talk) == []


def test_all_configs_can_be_replaced(talk: Dialogue) -> None:
    alter(talk, "workers", (LOCK, SET, "20000"))
    assert replace(talk, "workers", share_isolation_level="read_committed") is ErrorCode.NONE
    found = described(talk, "workers")
    assert found["share.isolation.level"] == ("read_committed", 8)
    assert found[LOCK] == ("30000", 5)


def test_the_brokers_setting_is_a_synonym(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"share.record_lock_duration": "25s"})
    alter(talk, "workers", (LOCK, SET, "20000"))
    (only,) = describe(talk, "workers", LOCK, synonyms=True).configs
    assert [(each.name, each.value, each.source) for each in only.synonyms] == [
        (LOCK, "20000", 8),
        (f"group.{LOCK}", "25000", 4),
        (f"group.{LOCK}", "30000", 5),
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("no.such.config", SET, "1"), ErrorCode.INVALID_CONFIG),
        ((LOCK, SET, "1"), ErrorCode.INVALID_CONFIG),
        ((LOCK, SET, None), ErrorCode.INVALID_REQUEST),
        ((RESET, APPEND, "earliest"), ErrorCode.INVALID_CONFIG),
        (("consumer.session.timeout.ms", SET, "45000"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_changes_that_are_refused(
    talk: Dialogue, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    assert alter(talk, "workers", change) is code
    assert listed(talk) == []


def test_a_group_has_a_name(talk: Dialogue) -> None:
    assert alter(talk, "", (LOCK, SET, "20000")) is ErrorCode.INVALID_REQUEST
    assert replace(talk, "") is ErrorCode.INVALID_REQUEST
    assert describe(talk, "").error_code == ErrorCode.INVALID_REQUEST


def test_configs_survive_a_restart_and_are_in_snapshots(talk: Dialogue) -> None:
    alter(talk, "workers", (LOCK, SET, "20000"))
    talk.restart()
    assert described(talk, "workers")[LOCK] == ("20000", 8)
    copy = Image()
    for record in talk.node.image.snapshot():
        copy.replay(record)
    assert copy.group_configs == {"workers": {LOCK: "20000"}}
    assert copy == talk.node.image
    assert talk.node.image.fork().group_configs == copy.group_configs


def test_before_the_upgrade_is_finalized_groups_have_no_configs(talk: Dialogue) -> None:
    talk.node.commit([FeatureLevelChanged(level=1)], talk.now_ms)
    talk.settle()
    assert alter(talk, "workers", (LOCK, SET, "20000")) is ErrorCode.UNSUPPORTED_VERSION
