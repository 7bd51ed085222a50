"""Tests the metadata image that results from records."""

from dataclasses import replace

import pytest

from barnabas.metadata.image import BROKER, Image, PartitionImage
from barnabas.metadata.metadata_records import (
    BrokerChanged,
    BrokerRegistered,
    BrokerStarted,
    BrokerUnregistered,
    ClusterFormed,
    ConfigChanged,
    FeatureLevelChanged,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    decode,
    encode,
)
from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import (
    AclAdded,
    AclRemoved,
    ClientQuotaChanged,
    ClusterSecretChanged,
    RoleChanged,
    ScramCredentialChanged,
    ScramCredentialRemoved,
    SecurityRecord,
)

TOPIC_ID = bytes(15) + b"\x07"


def registered(node_id: int, epoch: int) -> BrokerRegistered:
    return BrokerRegistered(
        node_id=node_id,
        broker_epoch=epoch,
        incarnation="aa",
        host="h",
        port=1,
        peer_host="p",
        peer_port=2,
        rack="r1",
        directory="dd",
    )


def an_image() -> Image:
    image = Image()
    for record in (
        ClusterFormed(cluster_id="c"),
        registered(1, 0),
        registered(2, 1),
        BrokerChanged(node_id=1, broker_epoch=0, fenced=False, stopping=True),
        TopicCreated(
            name="t", topic_id=TOPIC_ID.hex(), replicas=[[1, 2], [2, 1]], config={"flush": "ack"}
        ),
        PartitionChanged(
            topic_id=TOPIC_ID.hex(),
            partition=1,
            replicas=[2, 1, 3],
            leader=-1,
            leader_epoch=4,
            isr=[2],
            eligible=[1],
            adding=[3],
            removing=[1],
            partition_epoch=6,
            unclean=True,
        ),
        ConfigChanged(kind=BROKER, name="1", changes={"log.retention.ms": "5"}),
        ProducerIdsReserved(next_producer_id=3000),
    ):
        image.replay(record)
    return image


def again(image: Image) -> Image:
    copy = Image()
    for record in image.snapshot():
        copy.replay(decode(*encode(record)))
    return copy


def test_a_snapshot_makes_the_image_again() -> None:
    image = an_image()
    assert again(image) == image


def test_broker_epochs_are_never_given_twice_even_over_a_snapshot_without_the_broker() -> None:
    image = an_image()
    image.replay(BrokerUnregistered(node_id=2, broker_epoch=1))
    assert again(image).last_broker_epoch == 1
    assert again(image) == image


FORKED = (
    BrokerStarted(node_id=1),
    BrokerChanged(node_id=2, broker_epoch=1, fenced=False, stopping=False),
    PartitionsAdded(topic_id=TOPIC_ID.hex(), replicas=[[1]]),
    ConfigChanged(kind="topic", name="t", changes={"flush": "interval"}),
    ConfigChanged(kind=BROKER, name="1", changes={"log.retention.ms": None}),
    TopicCreated(name="u", topic_id=bytes(16).hex(), replicas=[[1]]),
    BrokerUnregistered(node_id=1, broker_epoch=0),
    ProducerIdsReserved(next_producer_id=9000),
)


@pytest.mark.parametrize("changed", ["fork", "image"])
def test_a_fork_goes_its_own_way(changed: str) -> None:
    image = an_image()
    before = again(image)
    fork = image.fork()
    assert fork == image
    target, other = (fork, image) if changed == "fork" else (image, fork)
    expected = again(image)
    for record in FORKED:
        target.replay(record)
        expected.replay(record)
        assert other == before
    assert target == expected != other


def test_a_fork_of_a_fork_goes_its_own_way() -> None:
    image = an_image()
    first = image.fork()
    first.replay(FORKED[0])
    second = first.fork()
    kept = again(first)
    for record in FORKED[1:]:
        second.replay(record)
        image.replay(record)
    assert first == kept


def test_a_deleted_topic_is_found_by_neither_name_nor_id() -> None:
    image = an_image()
    image.replay(TopicDeleted(topic_id=TOPIC_ID.hex()))
    assert image.topics == {}
    assert image.topic_by_id(TOPIC_ID) is None


def test_a_partition_that_is_changed_is_another_value() -> None:
    image = an_image()
    seen = image.topics["t"].partitions[0]
    image.replay(BrokerStarted(node_id=1))
    assert seen == PartitionImage.fresh([1, 2])
    assert image.topics["t"].partitions[0].leader_epoch == 1


def test_records_of_an_older_version_are_read() -> None:
    stored = b'{"topic_id": "07", "partition": 0, "replicas": [1], "leader": 1, '
    stored += b'"leader_epoch": 1, "isr": [1], "partition_epoch": 1}'
    record = decode(b"PartitionChanged", stored)
    assert isinstance(record, PartitionChanged)
    assert not record.unclean


def test_a_record_of_level_1_holds_nothing_that_level_1_cannot_read() -> None:
    created = TopicCreated(name="u", topic_id=bytes(16).hex(), replicas=[[1]])
    assert b"replication_factor" not in encode(created)[1]
    kinds = {type(record) for record in an_image().snapshot()}
    assert FeatureLevelChanged not in kinds


def test_the_level_and_a_wanted_replication_factor_survive_a_snapshot() -> None:
    image = an_image()
    image.replay(FeatureLevelChanged(level=2))
    topic_id = bytes(16).hex()
    image.replay(TopicCreated(name="u", topic_id=topic_id, replicas=[[1, 2]], replication_factor=3))
    assert again(image) == image
    assert again(image).feature_level == 2
    assert again(image).topics["u"].replication_factor == 3


SECURITY: tuple[SecurityRecord, ...] = (
    ClusterSecretChanged(secret="5e"),
    ScramCredentialChanged(
        user="alice",
        mechanism="SCRAM-SHA-256",
        salt="01",
        stored_key="02",
        server_key="03",
        iterations=4096,
    ),
    AclAdded(
        acl_id="a1",
        resource_type=2,
        pattern_type=3,
        resource_name="orders",
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    ),
    RoleChanged(role="readers", members=["User:alice"]),
    ClientQuotaChanged(
        entity={"user": "alice", "client-id": None}, key="producer_byte_rate", value=1e6
    ),
)


def test_security_metadata_survives_a_snapshot() -> None:
    image = an_image()
    for record in SECURITY:
        image.replay(decode(*encode(record)))
    copy = Image()
    for kept in image.snapshot():
        copy.replay(decode(*encode(kept)))
    assert copy.security == image.security
    assert list(image.security.snapshot()) == list(SECURITY)


def test_a_fork_changes_its_own_security_metadata() -> None:
    image = an_image()
    for record in SECURITY:
        image.replay(record)
    fork = image.fork()
    changes: tuple[SecurityRecord, ...] = (
        ScramCredentialRemoved(user="alice", mechanism="SCRAM-SHA-256"),
        AclRemoved(acl_id="a1"),
        RoleChanged(role="readers", members=[]),
        ClientQuotaChanged(
            entity={"client-id": None, "user": "alice"}, key="producer_byte_rate", value=None
        ),
    )
    for change in changes:
        fork.replay(change)
    assert fork.security == SecurityImage(secret="5e")
    assert list(image.security.snapshot()) == list(SECURITY)


def test_a_broker_registers_further_listeners() -> None:
    image = Image()
    record = replace(registered(1, 0), endpoints={"SECURE": ("broker-1", 9093)})
    image.replay(decode(*encode(record)))
    assert image.brokers[1].endpoints == {"SECURE": ("broker-1", 9093)}
    assert b"endpoints" not in encode(registered(1, 0))[1], "release 0.1.0 must be able to read it"
