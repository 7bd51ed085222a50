"""Tests a cluster's feature level: how it forms, rises, and excludes brokers that are too old.

Whole nodes run on simulated hosts.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli import serve
from barnabas.controller.feature_decisions import FIRST_RELEASE
from barnabas.metadata.features import FEATURE, LATEST_LEVEL
from barnabas.model.errors import ApiError, ErrorCode, TooOldError
from barnabas.model.pending import Pending
from barnabas.node.cluster import broker_lifecycle as membership
from barnabas.node.cluster import feature_upgrade as upgrading
from barnabas.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.sim.host import Host
from barnabas.testing.process import BrokerSubprocess
from tests.support.simulated_brokers import SimulatedBrokers, node_of
from tests.support.talk.dialogue import Dialogue


class Three(SimulatedBrokers):
    """Three brokers that have formed a cluster."""

    def __init__(self, level: int = LATEST_LEVEL) -> None:
        super().__init__()
        self.start(level)
        self.until(self.is_whole)

    def start(self, level: int) -> None:
        """Start all brokers; if they form a cluster, it is at this level."""
        for host in self.cluster.hosts:
            host.first_level = level
            host.start()

    def is_whole(self) -> bool:
        """Return whether every process is registered, unfenced, and known everywhere."""
        nodes = self.cluster.nodes
        epochs = {node.node_id: node.membership.broker_epoch for node in nodes}
        return len(nodes) == 3 and all(
            {broker.node_id: broker.broker_epoch for broker in node.brokers} == epochs
            for node in nodes
        )

    def is_named(self) -> bool:
        """Return whether the cluster has got its name."""
        return all(node.image.cluster_id for node in self.cluster.nodes)

    def until(self, done: Callable[[], bool]) -> None:
        self.run_until(done, "the condition holds")

    @property
    def other(self) -> Host:
        return next(host for host in self.cluster.hosts if host is not self.controller)

    def levels(self) -> set[int]:
        return {node.image.feature_level for node in self.cluster.nodes}

    def begin_update(self, *, validate_only: bool = False) -> Pending[None]:
        update = FeatureUpdateKey(feature=FEATURE, max_version_level=LATEST_LEVEL)
        request = UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only)
        controller, found = self.controller, list[Pending[None]]()
        node = node_of(controller)
        controller.run_event(
            controller.life, lambda: found.append(node.controlling.upgrading.update(request))
        )
        return found[0]

    def update(self, *, validate_only: bool = False) -> str:
        """Request the latest level; return the error, or nothing on success."""
        said: list[str] = []
        answer = self.begin_update(validate_only=validate_only)
        answer.when_done(lambda _: said.append(""), lambda error: said.append(str(error)))
        self.until(lambda: bool(said))
        return said[0]


@pytest.fixture
def three() -> Three:
    return Three()


@pytest.fixture
def old_three() -> Three:
    """A cluster at level 1, all of whose brokers run the current release by now."""
    return Three(level=1)


def test_a_new_cluster_is_at_the_latest_level(three: Three) -> None:
    assert three.levels() == {LATEST_LEVEL}
    assert three.update() == ""


def test_a_cluster_whose_forming_was_interrupted_gets_its_level_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name is committed first; its controller may end before the level is committed."""
    with monkeypatch.context() as first:
        first.setattr(membership.Membership, "_register", lambda *_: None)
        first.setattr(Three, "is_whole", Three.is_named)
        three = Three(level=1)
        for host in three.cluster.hosts:
            host.kill(power_cut=False)
    three.start(LATEST_LEVEL)
    three.until(three.is_whole)
    assert three.levels() == {LATEST_LEVEL}


def test_a_level_rises_on_every_broker(old_three: Three) -> None:
    assert old_three.levels() == {1}
    assert old_three.update() == ""
    old_three.until(lambda: old_three.levels() == {LATEST_LEVEL})


def test_a_check_changes_nothing(old_three: Three) -> None:
    assert old_three.update(validate_only=True) == ""
    assert old_three.levels() == {1}


def test_a_broker_of_an_older_release_keeps_the_level(
    old_three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrading, "levels_of", lambda _: FIRST_RELEASE)
    said = old_three.update()
    assert f"node {node_of(old_three.other).node_id} knows level 1" in said
    assert f"node {node_of(old_three.controller).node_id} " not in said
    assert old_three.levels() == {1}


def test_a_broker_that_is_down_keeps_the_level(old_three: Three) -> None:
    down = old_three.other
    number = node_of(down).node_id
    down.kill(power_cut=False)
    assert f"node {number} " in old_three.update()
    old_three.until(lambda: node_of(old_three.controller).image.brokers[number].fenced)
    assert f"node {number} is not running" in old_three.update()
    down.start()
    old_three.until(old_three.is_whole)
    assert old_three.update() == ""


def test_a_broker_that_registers_meanwhile_makes_the_answers_void(
    old_three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    surveyed: list[Callable[[], None]] = []
    decide = upgrading.Upgrading._decide

    def later(*arguments: object) -> None:
        surveyed.append(lambda: decide(*arguments))  # type: ignore[arg-type]

    monkeypatch.setattr(upgrading.Upgrading, "_decide", later)
    said: list[str] = []
    answer = old_three.begin_update()
    answer.when_done(lambda _: said.append(""), lambda error: said.append(str(error)))
    old_three.until(lambda: bool(surveyed))
    host = old_three.other
    host.kill(power_cut=False)
    host.start()
    old_three.until(old_three.is_whole)
    old_three.controller.run_event(old_three.controller.life, surveyed[0])
    old_three.until(lambda: bool(said))
    assert "ask again" in said[0]
    assert old_three.levels() == {1}


def test_a_broker_of_an_older_release_is_not_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    three = Three()
    host = three.other
    host.kill(power_cut=False)
    monkeypatch.setattr(membership, "FEATURE", "a.feature.of.another.product")
    host.start()
    with pytest.raises(TooOldError, match=r"does not register broker .* knows levels 1 to 2"):
        three.until(three.is_whole)


def test_only_the_controller_checks_for_failures(three: Three) -> None:
    """A broker that asks the wrong node is redirected, not rejected as too old."""
    node = node_of(three.other)
    request = node.membership.registration()
    with pytest.raises(ApiError, match="another node controls"):
        node.controlling.register(request)
    assert not node.outbox


def test_a_broker_that_reads_of_a_later_level_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    three = Three()
    monkeypatch.setattr("barnabas.node.cluster.metadata_quorum.LATEST_LEVEL", 1)
    host = three.other
    host.kill(power_cut=False)
    host.start()
    with pytest.raises(TooOldError, match="the cluster's feature level is 2"):
        three.until(three.is_whole)


def test_a_lone_broker_of_an_older_release_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        later.setattr("barnabas.node.node.LATEST_LEVEL", 3)
        later.setattr("barnabas.node.cluster.metadata_quorum.LATEST_LEVEL", 3)
        talk = Dialogue(tmp_path)
        talk.node.stop()
    broker = BrokerSubprocess(tmp_path)
    broker.spawn()
    code, said = broker.wait(), broker.log_text()
    broker.close()
    assert code == serve.CANNOT_START
    assert "the cluster's feature level is 3; this release" in said
    assert "Install on this machine" in said


@pytest.mark.parametrize("version", range(3))
def test_clients_raise_the_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr("barnabas.node.node.LATEST_LEVEL", 1)
    talk = Dialogue(tmp_path)

    def ask(name: str, level: int) -> UpdateFeaturesResponse:
        update = FeatureUpdateKey(feature=name, max_version_level=level)
        answer = talk.ask(UpdateFeaturesRequest(feature_updates=[update]), version)
        assert isinstance(answer, UpdateFeaturesResponse)
        return answer

    unknown = ask("metadata.version", 7)
    assert unknown.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "there is no such feature" in (unknown.error_message or "")
    done = ask(FEATURE, LATEST_LEVEL)
    assert (done.error_code, done.error_message) == (0, None)
    assert [each.feature for each in done.results] == ([FEATURE] if version < 2 else [])
    assert talk.node.image.feature_level == LATEST_LEVEL
    assert ask(FEATURE, 1).error_code == ErrorCode.INVALID_UPDATE_VERSION
    talk.node.stop()
