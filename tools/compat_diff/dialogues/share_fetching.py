"""Dialogues about records of share groups: acquire modes, acknowledgements, sessions and locks."""

from collections.abc import Generator, Sequence

from barnabas.protocol.messages import incremental_alter_configs as configs
from barnabas.protocol.messages import share_acknowledge as acks
from barnabas.protocol.messages import share_fetch as fetches
from tests.support.talk.requests import batch
from tools.compat_diff.dialogues.asking import create, each_version, produce, topic
from tools.compat_diff.dialogues.share_groups import INITIALIZED_MS, MEMBER, OTHER, beat
from tools.compat_diff.steps import Answer, Ask, Dialogue, Pause, Scene, Step, Talk

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
GROUP = 32
"""The type of config resources that are groups."""
SETTLED_MS = 500
Acks = Sequence[tuple[int, int, Sequence[int]]]
"""First and last offset, and one answer for all of them or one for each."""


def begin_early(group: str) -> Ask:
    """Have a group begin at the first records."""
    value = configs.AlterableConfig(
        name="share.auto.offset.reset", config_operation=0, value="earliest"
    )
    resource = configs.AlterConfigsResource(
        resource_type=GROUP, resource_name=group, configs=[value]
    )
    return Ask(configs.IncrementalAlterConfigsRequest(resources=[resource]), 1)


def fetch(  # noqa: PLR0913
    group: str | None,
    topic_id: bytes,
    epoch: int,
    answers: Acks = (),
    *,
    member: str = MEMBER,
    version: int = 2,
    records: int = 100,
    exact: bool = False,
    renews: bool = False,
    partitions: Sequence[int] = (0,),
) -> Ask:
    """Fetch records without waiting long, and acknowledge others."""
    batches = [
        fetches.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[*kinds])
        for a, b, kinds in answers
    ]
    parts = [
        fetches.FetchPartition(partition_index=number, acknowledgement_batches=batches)
        for number in partitions
    ]
    request = fetches.ShareFetchRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        max_wait_ms=0 if renews else SETTLED_MS,
        min_bytes=0 if renews else 1,
        max_bytes=0 if renews else 1 << 20,
        max_records=0 if renews else records,
        batch_size=0 if renews else records,
        topics=[fetches.FetchTopic(topic_id=topic_id, partitions=parts)],
    )
    if version > 1:
        request.share_acquire_mode = int(exact)
        request.is_renew_ack = renews
    return Ask(request, version, connection=member)


def acknowledge(
    group: str,
    topic_id: bytes,
    epoch: int,
    answers: Acks,
    *,
    member: str = MEMBER,
    version: int = 2,
) -> Ask:
    """Acknowledge records."""
    batches = [
        acks.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[*kinds])
        for a, b, kinds in answers
    ]
    part = acks.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    request = acks.ShareAcknowledgeRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        topics=[acks.AcknowledgeTopic(topic_id=topic_id, partitions=[part])],
    )
    return Ask(request, version, connection=member)


def prepared(scene: Scene) -> Generator[Step, Answer, bytes]:
    """Make a topic with three batches, and a group with two members that begins at the first."""
    g, a = scene.name("g"), scene.name("a")
    made = yield create(topic(a))
    topic_id: bytes = made.first("topic_id", bytes(16))
    for _ in range(3):
        yield produce(a, batch(4))
    yield begin_early(g)
    yield beat(g, 0, [a])
    yield Pause(INITIALIZED_MS)
    return topic_id


def consuming(scene: Scene, version: int) -> Talk:
    """Two members, every answer to a record, and what comes again."""
    g = scene.name("g")
    topic_id = yield from prepared(scene)
    yield fetch(g, topic_id, 0, records=1, version=version)
    yield fetch(g, topic_id, 0, records=5, member=OTHER, version=version)
    yield fetch(g, topic_id, 1, version=version)
    answers = [(0, 0, [ACCEPT]), (1, 2, [RELEASE]), (3, 3, [REJECT])]
    yield acknowledge(g, topic_id, 2, answers, version=version)
    yield fetch(g, topic_id, 1, member=OTHER, version=version)
    answers = [(1, 2, [ACCEPT]), (4, 7, [ACCEPT, GAP, ACCEPT, RELEASE])]
    yield acknowledge(g, topic_id, 2, answers, member=OTHER, version=version)
    yield fetch(g, topic_id, -1, member=OTHER, version=version)
    yield Pause(SETTLED_MS)
    yield fetch(g, topic_id, 3, version=version)
    yield fetch(g, topic_id, -1, version=version)


def exact(scene: Scene) -> Talk:
    """An exact number of records."""
    g = scene.name("g")
    topic_id = yield from prepared(scene)
    yield fetch(g, topic_id, 0, records=3, exact=True)
    yield fetch(g, topic_id, 0, records=3, exact=True, member=OTHER)
    yield fetch(g, topic_id, 1, [(0, 2, [ACCEPT])], records=1, exact=True)


def wrong(scene: Scene) -> Talk:
    """Wrong epochs, groups, members, offsets and answers."""
    g = scene.name("g")
    topic_id = yield from prepared(scene)
    yield fetch(g, topic_id, 1)
    yield fetch(g, topic_id, -1)
    yield fetch(None, topic_id, 0)
    yield fetch(g, topic_id, 0, [(0, 0, [ACCEPT])])
    yield acknowledge(g, topic_id, 1, [(0, 0, [ACCEPT])])
    yield acknowledge(g, topic_id, -1, [])
    yield fetch(g, topic_id, 0, records=1)
    yield acknowledge(g, topic_id, 0, [(0, 0, [ACCEPT])])
    yield fetch(g, topic_id, 7)
    yield fetch(g, topic_id, 0, records=1, member=OTHER)
    for number, answers in enumerate(
        (
            [(0, 3, [ACCEPT])],  # another member's
            [(4, 9, [ACCEPT])],
            [(4, 5, [9])],
            [(5, 4, [ACCEPT])],
            [(4, 6, [ACCEPT, ACCEPT])],
            [(4, 5, [ACCEPT]), (5, 6, [ACCEPT])],
        )
    ):
        yield acknowledge(g, topic_id, number + 1, answers, member=OTHER)


WRITTEN: dict[str, Dialogue] = {
    **each_version("share_fetching/consuming", "ShareFetch", consuming),
    "share_fetching/exact": exact,
    "share_fetching/wrong": wrong,
}
