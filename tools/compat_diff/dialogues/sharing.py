"""Dialogues about share groups: the state of share partitions, coordinators, configs of groups."""

from barnabas.model.ids import TopicId
from barnabas.model.share_state import SharePartitionKey
from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_configs, incremental_alter_configs
from barnabas.protocol.messages import delete_share_group_state as deletes
from barnabas.protocol.messages import initialize_share_group_state as initializes
from barnabas.protocol.messages import read_share_group_state as reads
from barnabas.protocol.messages import read_share_group_state_summary as summaries
from barnabas.protocol.messages import write_share_group_state as writes
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tools.compat_diff.dialogues.asking import create, each_version, metadata, topic
from tools.compat_diff.steps import Ask, Dialogue, Scene, Talk

GROUP = 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
NOWHERE = bytes([9] * 16)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4

Run = tuple[int, int, int, int]


class States:
    """Requests about the share partitions of one group and topic."""

    def __init__(self, group: str, topic_id: bytes) -> None:
        self.group = group
        self.topic_id = topic_id

    def initialize(
        self, start: int = 0, *, epoch: int = 0, part: int = 0, topic_id: bytes | None = None
    ) -> Ask:
        """Let a share partition begin anew."""
        parts = [initializes.PartitionData(partition=part, state_epoch=epoch, start_offset=start)]
        topics = [
            initializes.InitializeStateData(topic_id=topic_id or self.topic_id, partitions=parts)
        ]
        return Ask(
            initializes.InitializeShareGroupStateRequest(group_id=self.group, topics=topics), 0
        )

    def read(self, leader_epoch: int, *, part: int = 0, topic_id: bytes | None = None) -> Ask:
        """Read a state."""
        parts = [reads.PartitionData(partition=part, leader_epoch=leader_epoch)]
        topics = [reads.ReadStateData(topic_id=topic_id or self.topic_id, partitions=parts)]
        return Ask(reads.ReadShareGroupStateRequest(group_id=self.group, topics=topics), 0)

    def write(
        self,
        *runs: Run,
        start: int = -1,
        epoch: int = 0,
        leader: int = 0,
        count: int = -1,
        part: int = 0,
        version: int = 1,
        topic_id: bytes | None = None,
    ) -> Ask:
        """Store a change."""
        batches = [
            writes.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=times
            )
            for first, last, state, times in runs
        ]
        data = writes.PartitionData(
            partition=part,
            state_epoch=epoch,
            leader_epoch=leader,
            start_offset=start,
            delivery_complete_count=count if version else -1,
            state_batches=batches,
        )
        topics = [writes.WriteStateData(topic_id=topic_id or self.topic_id, partitions=[data])]
        request = writes.WriteShareGroupStateRequest(group_id=self.group, topics=topics)
        return Ask(request, version)

    def summary(
        self, *, part: int = 0, leader: int = 0, version: int = 1, topic_id: bytes | None = None
    ) -> Ask:
        """Read a summary."""
        parts = [summaries.PartitionData(partition=part, leader_epoch=leader)]
        topics = [
            summaries.ReadStateSummaryData(topic_id=topic_id or self.topic_id, partitions=parts)
        ]
        request = summaries.ReadShareGroupStateSummaryRequest(group_id=self.group, topics=topics)
        return Ask(request, version)

    def delete(self, *, part: int = 0, topic_id: bytes | None = None) -> Ask:
        """Delete a state."""
        parts = [deletes.PartitionData(partition=part)]
        topics = [deletes.DeleteStateData(topic_id=topic_id or self.topic_id, partitions=parts)]
        return Ask(deletes.DeleteShareGroupStateRequest(group_id=self.group, topics=topics), 0)


def _states(scene: Scene, partitions: int = 2) -> Talk:
    """Create the topic that a dialogue is about."""
    yield create(topic(scene.name("a"), partitions))


def keeping(scene: Scene, version: int) -> Talk:
    """Initialize, write, read, delete."""
    yield from _states(scene)
    answer = yield metadata(scene.name("a"))
    states = States(scene.name("g"), answer.first("topic_id", NOWHERE))
    yield states.summary()
    yield states.initialize(5)
    yield states.summary()
    yield states.write((5, 9, ACKNOWLEDGED, 1), count=5, version=version)
    yield states.read(0)
    yield states.write((20, 29, AVAILABLE, 2), (40, 40, ARCHIVED, 5), start=8, version=version)
    yield states.read(-1)
    yield states.write((22, 24, ACKNOWLEDGED, 2), (41, 45, ARCHIVED, 5), version=version)
    yield states.read(0)
    yield states.summary()
    yield states.write(start=23, count=2, version=version)
    yield states.read(0)
    yield states.initialize(-1, part=1)
    yield states.read(0, part=1)
    yield states.summary(part=1)
    yield states.delete()
    yield states.read(0)
    yield states.write((50, 50, ACKNOWLEDGED, 1), version=version)
    yield states.summary()
    yield states.delete()


def fencing(scene: Scene) -> Talk:
    """Use older and newer epochs."""
    yield from _states(scene)
    answer = yield metadata(scene.name("a"))
    states = States(scene.name("g"), answer.first("topic_id", NOWHERE))
    yield states.initialize(0, epoch=3)
    yield states.initialize(0, epoch=2)
    yield states.initialize(7, epoch=3)
    yield states.initialize(9, epoch=4)
    yield states.read(5)
    yield states.summary()
    yield states.summary(leader=2)
    yield states.read(4)
    yield states.read(-1)
    yield states.read(5)
    yield states.write((10, 11, ACKNOWLEDGED, 1), epoch=4, leader=4)
    yield states.write((10, 11, ACKNOWLEDGED, 1), epoch=3, leader=5)
    yield states.write((10, 11, ACKNOWLEDGED, 1), epoch=3, leader=4)
    yield states.write((10, 11, ACKNOWLEDGED, 1), epoch=5, leader=6)
    yield states.write((12, 13, ACKNOWLEDGED, 1), epoch=-1, leader=-1)
    yield states.read(6)
    yield states.summary()
    yield states.delete()
    yield states.initialize(0, epoch=0)
    yield states.read(0)


def keeping_wrongly(scene: Scene) -> Talk:
    """Name what does not exist."""
    yield from _states(scene)
    answer = yield metadata(scene.name("a"))
    topic_id = answer.first("topic_id", NOWHERE)
    states = States(scene.name("g"), topic_id)
    yield states.read(0)
    yield states.write((0, 0, ACKNOWLEDGED, 1))
    for part in (7, -1):
        yield states.initialize(part=part)
        yield states.read(0, part=part)
        yield states.write(part=part)
        yield states.summary(part=part)
        yield states.delete(part=part)
    for wrong in (NOWHERE, bytes(16)):
        yield states.initialize(topic_id=wrong)
        yield states.read(0, topic_id=wrong)
        yield states.write(topic_id=wrong)
        yield states.summary(topic_id=wrong)
        yield states.delete(topic_id=wrong)
    nameless = States("", topic_id)
    yield nameless.initialize()
    yield nameless.read(0)
    yield nameless.write()
    yield nameless.summary()
    yield nameless.delete()
    empty: list[Message] = [
        initializes.InitializeShareGroupStateRequest(group_id=states.group),
        reads.ReadShareGroupStateRequest(group_id=states.group),
        writes.WriteShareGroupStateRequest(group_id=states.group),
        deletes.DeleteShareGroupStateRequest(group_id=states.group),
        summaries.ReadShareGroupStateSummaryRequest(group_id=states.group),
        initializes.InitializeShareGroupStateRequest(
            group_id=states.group, topics=[initializes.InitializeStateData(topic_id=topic_id)]
        ),
    ]
    for request in empty:
        yield Ask(request, 0)


def finding(scene: Scene) -> Talk:
    """Find the coordinators of share partitions."""
    plain = SharePartitionKey(scene.name("g"), TopicId(bytes([7] * 16)), 0).coordinator_key
    topic_id = plain.split(":")[1]
    wrong = [f"a:{plain}", "g", "g:x", "g:x:0", f"g:{topic_id}:x", f"g:{topic_id}:-1"]
    wrong += [f":{topic_id}:0", f" :{topic_id}:0", f"g:{topic_id}:"]
    wrong += [f"g:{topic_id}: 0", f"g:{topic_id}:1_0", f"g:{topic_id}==:0", "g:AAAA:0"]
    for key in (plain, *wrong):
        yield Ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)
    for version in (4, 5):
        yield Ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[plain]), version)
    yield Ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[plain, "g", plain]), 6)


def _describe(group: str, *keys: str, synonyms: bool = False) -> Ask:
    wanted = DescribeConfigsResource(
        resource_type=GROUP, resource_name=group, configuration_keys=list(keys) or None
    )
    return Ask(DescribeConfigsRequest(resources=[wanted], include_synonyms=synonyms), 4)


def _alter(group: str, name: str, what: int, value: str | None) -> Ask:
    entry = incremental_alter_configs.AlterableConfig(name=name, config_operation=what, value=value)
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=GROUP, resource_name=group, configs=[entry]
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    return Ask(request, 1)


def _replace(group: str, **values: str) -> Ask:
    entries = [
        alter_configs.AlterableConfig(name=name.replace("_", "."), value=value)
        for name, value in values.items()
    ]
    resource = alter_configs.AlterConfigsResource(
        resource_type=GROUP, resource_name=group, configs=entries
    )
    return Ask(alter_configs.AlterConfigsRequest(resources=[resource]), 2)


SHARE_CONFIGS = [
    "share.auto.offset.reset",
    "share.delivery.count.limit",
    "share.heartbeat.interval.ms",
    "share.isolation.level",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
    "share.renew.acknowledge.enable",
    "share.session.timeout.ms",
]


def configuring(scene: Scene) -> Talk:
    """Describe and alter the configs of a group."""
    g = scene.name("g")
    yield _describe(g, *SHARE_CONFIGS, synonyms=True)
    tries = [
        ("share.auto.offset.reset", ["earliest", "latest", "none", "Earliest", "", "by_duration:"]),
        ("share.auto.offset.reset", ["by_duration:PT1H", "by_duration:1h", "by_duration:-PT1H"]),
        ("share.auto.offset.reset", ["by_duration:P1DT2H", "by_duration:pt1m", "by_duration:PT0S"]),
        ("share.isolation.level", ["read_committed", "READ_COMMITTED", "x"]),
        ("share.record.lock.duration.ms", ["15000", "14999", "60000", "60001", "x", " 20000 "]),
        ("share.delivery.count.limit", ["2", "1", "10", "11"]),
        ("share.partition.max.record.locks", ["100", "99", "4000", "4001"]),
        ("share.renew.acknowledge.enable", ["false", "TRUE", "no"]),
        ("share.session.timeout.ms", ["45000", "44999", "60000", "60001"]),
        ("share.heartbeat.interval.ms", ["5000", "4999", "15000", "15001"]),
        ("no.such.config", ["1"]),
    ]
    for name, values in tries:
        for value in values:
            yield _alter(g, name, SET, value)
    yield _alter(g, "share.delivery.count.limit", SET, None)
    yield _alter(g, "share.isolation.level", APPEND, "read_committed")
    yield _describe(g, *SHARE_CONFIGS, synonyms=True)
    yield Ask(ListConfigResourcesRequest(resource_types=[GROUP]), 1)
    yield _replace(g, share_delivery_count_limit="4")
    yield _describe(g, *SHARE_CONFIGS)
    yield _alter(g, "share.delivery.count.limit", DELETE, None)
    yield _alter(g, "no.such.config", DELETE, None)
    yield _describe(g, "share.delivery.count.limit", "no.such.config")
    yield _alter("", "share.delivery.count.limit", SET, "4")
    yield _replace("", share_delivery_count_limit="4")
    yield _describe("")


WRITTEN: dict[str, Dialogue] = {
    **each_version("sharing/state", "WriteShareGroupState", keeping),
    "sharing/fencing": fencing,
    "sharing/state-wrongly": keeping_wrongly,
    "sharing/coordinators": finding,
    "sharing/configs": configuring,
}
