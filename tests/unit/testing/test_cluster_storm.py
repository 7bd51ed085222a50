"""Tests the draws of the storm, and its check of a cluster's health."""

from collections import Counter
from pathlib import Path
from random import Random

from barnabas.testing.cluster_view import ClusterView, PartitionView
from barnabas.testing.places import Loopback
from tests.support.clusters.cluster_damage import PATTERNS, flip_one
from tests.support.clusters.cluster_delay import OWED_BYTES, between_nodes
from tests.support.clusters.cluster_faults import FAULTS
from tests.support.clusters.cluster_ground import SECURITY
from tests.support.clusters.cluster_places import OUTSIDE
from tests.support.clusters.cluster_security_faults import RELOAD, SECURITY_FAULTS, WRONG
from tests.support.clusters.cluster_storm import (
    CLASSES,
    compatible,
    drawn,
    is_refusal,
    unseen,
)

WHOLE = PartitionView(1, 4, (1, 2, 3), (3, 1, 2))


def seen(
    *, brokers: tuple[int, ...] = (1, 2, 3), leader: int = 2, **parts: PartitionView
) -> ClusterView:
    partitions = {(name, 0): part for name, part in parts.items()}
    return ClusterView(brokers, partitions, leader, 7, {1: 10, 2: 10, 3: 9})


def test_a_healthy_cluster_has_no_problems() -> None:
    assert seen(load=WHOLE).problems((1, 2, 3), ("load",)) == []


def test_what_keeps_a_cluster_from_being_healthy() -> None:
    assert seen(brokers=(1, 2)).problems((1, 2, 3)) == ["broker 3 is missing"]
    assert seen(leader=-1).problems((1, 2, 3)) == ["the quorum's leader is -1"]
    assert seen().problems((1,), ("load",)) == ["there is no topic load"]
    for part in (WHOLE._replace(leader=-1), WHOLE._replace(isr=(1, 2))):
        (problem,) = seen(load=part).problems((1, 2, 3))
        assert problem.startswith("load-0: ")


def test_a_connection_that_ends_within_a_login_is_no_refusal() -> None:
    begun = "acks-1: _AUTHENTICATION: SASL SCRAM-SHA-512 mechanism handshake failed: Local: Broker "
    assert not is_refusal(begun + "transport failure: broker's supported mechanisms: (n/a)")
    assert is_refusal("acks-1: _AUTHENTICATION: SASL authentication error: wrong password")
    assert is_refusal("acks-1: TOPIC_AUTHORIZATION_FAILED")


def test_every_class_is_drawn_as_often_as_any_other() -> None:
    names = drawn(Random(1), 5, list(FAULTS))
    assert Counter(names) == dict.fromkeys(FAULTS, 5)
    assert names == drawn(Random(1), 5, list(FAULTS))
    assert names != drawn(Random(2), 5, list(FAULTS))
    assert set(names[: len(FAULTS)]) == set(FAULTS)


def test_damage_comes_alone() -> None:
    assert compatible("kill", "power loss")
    assert not compatible("kill", "bit flip")
    assert compatible("kill", RELOAD)
    assert not compatible(WRONG, RELOAD)


def test_a_report_says_what_the_checks_cannot_detect() -> None:
    assert unseen().startswith("records that were neither acknowledged nor read")


def test_faults_of_security_need_it() -> None:
    assert {name for name in CLASSES if CLASSES[name]().needs == SECURITY} == {*SECURITY_FAULTS}


def test_a_flipped_bit_can_be_flipped_back(tmp_path: Path) -> None:
    path = tmp_path / "topics" / "t" / "0" / "00000000000000000000.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(100))
    flip = flip_one(tmp_path, Random(3))
    assert flip is not None
    assert flip.kind == "log"
    assert sum(byte.bit_count() for byte in path.read_bytes()) == 1
    flip.undo()
    assert path.read_bytes() == bytes(100)


def test_a_flip_is_not_taken_back_over_what_was_written_since(tmp_path: Path) -> None:
    path = tmp_path / "__cluster_metadata" / "quorum-state"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a")
    flip = flip_one(tmp_path, Random(1), "quorum state")
    assert flip is not None
    path.write_bytes(b"\xff")
    flip.undo()
    assert path.read_bytes() == b"\xff"


def test_nothing_to_flip(tmp_path: Path) -> None:
    assert flip_one(tmp_path, Random(1)) is None
    assert all(flip_one(tmp_path, Random(1), kind) is None for kind in PATTERNS)


def frame(source: int, target: int, protocol: bytes = b"\x08\x00") -> bytes:
    addresses = bytes([10, 0, 0, source, 10, 0, 0, target])
    return bytes(OWED_BYTES + 12) + protocol + bytes(12) + addresses + bytes(20)


def test_frames_of_clients_are_not_held_up() -> None:
    assert between_nodes(frame(1, 2))
    assert not between_nodes(frame(OUTSIDE, 2))
    assert not between_nodes(frame(1, OUTSIDE))
    assert not between_nodes(frame(1, 2, b"\x08\x06"))
    assert not between_nodes(b"")


def test_addresses_stay_the_same() -> None:
    place = Loopback()
    addresses = [place.client_address(1), place.peer_address(1), place.client_address(2)]
    assert len(set(addresses)) == 3
    assert place.client_address(1) == addresses[0]
