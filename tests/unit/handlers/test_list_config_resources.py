"""Tests ListConfigResources: the resources with configs, by type."""

from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import create_topic

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, UNHEARD_OF = 2, 4, 8, 16, 32, 64


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    talk = Dialogue(tmp_path)
    for name in ("one", "two"):
        create_topic(talk, name)
    return talk


def listed(talk: Dialogue, *types: int) -> list[tuple[int, str]]:
    answer = talk.ask(ListConfigResourcesRequest(resource_types=list(types)))
    assert answer.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


def test_everything_that_has_configs(talk: Dialogue) -> None:
    assert listed(talk) == [(TOPIC, "one"), (TOPIC, "two"), (BROKER, "1")]


def test_some_types(talk: Dialogue) -> None:
    assert listed(talk, BROKER) == [(BROKER, "1")]
    assert listed(talk, BROKER, TOPIC, BROKER) == [(BROKER, "1"), (TOPIC, "one"), (TOPIC, "two")]


def test_types_of_which_there_are_none(talk: Dialogue) -> None:
    assert listed(talk, BROKER_LOGGER, CLIENT_METRICS, GROUP) == []


def test_a_type_that_is_none(talk: Dialogue) -> None:
    answer = talk.ask(ListConfigResourcesRequest(resource_types=[TOPIC, UNHEARD_OF]))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.config_resources == []


def test_the_first_version_asks_for_client_metrics(talk: Dialogue) -> None:
    answer = talk.ask(ListConfigResourcesRequest(), 0)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.NONE, [])
