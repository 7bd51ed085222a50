"""Fixtures: a cluster of three brokers for the decisions of the controller."""

import pytest

from tests.support.talk.controller_talk import ControllerTalk


@pytest.fixture
def talk() -> ControllerTalk:
    """A cluster of three brokers, whose topics need two replicas in sync."""
    cluster = ControllerTalk(min_insync_replicas="2")
    for node_id in (1, 2, 3):
        cluster.start(node_id)
    return cluster
