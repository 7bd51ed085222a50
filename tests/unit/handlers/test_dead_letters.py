"""Tests dead letters (KIP-1191): what a group gives up on goes to its dead-letter topic, once."""

import errno

import pytest

from barnabas.effects import Notice
from barnabas.model.dead_letter_rules import GROUP_ENABLE, TOPIC_NAME, DeadLetterRules
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.share_state import DeliveryState
from barnabas.node.partitions.partition import Partition
from barnabas.node.share.dead_letter_topics import DeadLetterTopics
from barnabas.node.share.share_partition import SharePartition
from barnabas.node.share.sharing import Sharing
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import Record, build
from barnabas.share.dead_letter_records import (
    DELIVERED_TOO_OFTEN,
    REJECTED,
    WITHOUT_RECORD,
    Origin,
    read_origin,
    without_origin,
)
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.requests import batch, create_topic, delete_topic, fetch, produce, read
from tests.support.talk.stored_shares import StoredShares
from tests.unit.handlers.test_share_fetch import (
    ACCEPT,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    Member,
    Rules,
)

ENABLED = {GROUP_ENABLE: "true"}


class Group:
    """Group `g` on topic `a`, whose dead letters go to `dlq.g`."""

    def __init__(self, talk: Dialogue) -> None:
        self.talk = talk
        self.stored = StoredShares()
        self.rules = Rules()
        self.dead: DeadLetterRules | None = DeadLetterRules("dlq.g")
        self.topic_id = create_topic(talk, "a", 3)
        self.lead()

    def lead(self) -> None:
        """Begin to lead the partitions: what an earlier leader knew is lost."""

        def first_offset(_: str, partition: Partition) -> Pending[int]:
            return Pending.of(partition.log.start_offset)

        node = self.talk.node
        topics = DeadLetterTopics(node, node.peers, node.timers, node.outbox, lambda _: self.dead)
        node.sharing = Sharing(
            node.find, self.stored, node.timers, lambda _: self.rules, first_offset, 3, topics
        )

    def member(self, name: str = "ann") -> Member:
        return Member(self.talk, self.topic_id, name)

    @property
    def partition(self) -> SharePartition:
        (found,) = self.talk.node.sharing.partitions._by_key.values()
        return found

    def letters(self, topic: str = "dlq.g", partition: int = 0) -> list[Record]:
        return read(fetch(self.talk, topic, partition=partition).records)

    def origins(self, topic: str = "dlq.g", partition: int = 0) -> list[int]:
        """Return the offsets that the dead letters came from."""
        found = [read_origin(each.headers) for each in self.letters(topic, partition)]
        return [each.offset for each in found if each is not None]

    def states(self) -> dict[int, DeliveryState]:
        (cells,) = self.stored.cells.values()
        return {offset: state for offset, (state, _) in cells.items()}

    def notices(self) -> list[Notice]:
        return [each for each in self.talk.notices if "dead letters" in each.event]


@pytest.fixture
def group(talk: Dialogue) -> Group:
    return Group(talk)


@pytest.fixture
def ann(talk: Dialogue, group: Group) -> Member:
    create_topic(talk, "dlq.g", 2, ENABLED)
    produce(talk, "a", batch(10))
    return group.member()


def reject(ann: Member, first: int, last: int) -> None:
    assert ann.result((first, last, [REJECT])) == 0


def test_a_rejected_record_goes_to_the_dead_letter_topic_whole(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    content = [Record(0, START_MS, b"key", b"value", (("trace", b"7"), ("none", None)))]
    produce(talk, "a", build(content))
    ann.take()
    reject(ann, 10, 10)
    (letter,) = group.letters()
    assert (letter.key, letter.value) == (b"key", b"value")
    assert without_origin(letter.headers) == (("trace", b"7"), ("none", None))
    assert read_origin(letter.headers) == Origin("a", 0, 10, "g", 1, REJECTED, START_MS)
    assert group.states()[10] is DeliveryState.ARCHIVED
    assert talk.node.sharing.partitions.dead_letters_of("g") == (1, 0)


def test_a_group_may_want_the_headers_only(group: Group, ann: Member) -> None:
    group.dead = DeadLetterRules("dlq.g", copies=False)
    ann.take()
    reject(ann, 3, 4)
    letters = group.letters()
    assert [(each.key, each.value) for each in letters] == [(None, None)] * 2
    assert group.origins() == [3, 4]
    origin = read_origin(letters[0].headers)
    assert origin is not None
    assert origin.message == REJECTED


def test_a_record_that_was_delivered_too_often(talk: Dialogue, group: Group, ann: Member) -> None:
    group.rules.deliveries_max = 2
    ann.take(records=1, exact=True)
    ann.result((0, 0, [RELEASE]))
    assert group.letters() == []
    assert ann.take(records=1, exact=True) == [(0, 0, 2)]
    talk.pass_time(LOCK_MS)  # a timeout is the end of a delivery, too
    (letter,) = group.letters()
    origin = read_origin(letter.headers)
    assert origin is not None
    assert (origin.deliveries, origin.message) == (2, DELIVERED_TOO_OFTEN)


def test_without_a_dead_letter_topic_records_are_archived(group: Group, ann: Member) -> None:
    group.dead = None
    ann.take()
    reject(ann, 0, 4)
    assert group.letters() == []
    assert group.partition.sender is None


def test_gaps_are_no_dead_letters(group: Group, ann: Member) -> None:
    ann.take()
    assert ann.result((0, 1, [GAP]), (2, 9, [ACCEPT])) == 0
    assert group.letters() == []


def test_a_partition_has_its_partition_of_the_dead_letter_topic(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    produce(talk, "a", batch(2), partition=2)
    produce(talk, "a", batch(2), partition=1)
    ann.take(partitions=(1, 2))
    group.rules.deliveries_max = 1
    talk.pass_time(LOCK_MS)
    headers = [each.headers for number in (0, 1) for each in group.letters(partition=number)]
    found = [read_origin(each) for each in headers]
    assert [each.partition for each in found if each is not None] == [2, 2, 1, 1]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD, Codec.LZ4, Codec.SNAPPY])
def test_compressed_batches_are_opened(
    talk: Dialogue, group: Group, ann: Member, codec: Codec
) -> None:
    produce(talk, "a", batch(20, codec=codec, value=b"w"))
    ann.take()
    assert ann.result((8, 12, [REJECT]), (15, 15, [REJECT])) == 0
    assert group.origins() == [8, 9, 10, 11, 12, 15]
    assert [each.value for each in group.letters()] == [b"v"] * 2 + [b"w"] * 4


def test_nothing_of_a_long_read_is_done_within_the_event(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    talk.hold_scans = True
    ann.take()
    reject(ann, 0, 9)
    assert group.letters() == []
    assert group.states()[0] is DeliveryState.ARCHIVING
    talk.release_scans()
    assert group.origins() == list(range(10))


def test_members_neither_get_nor_acknowledge_what_waits(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    talk.hold_scans = True
    ann.take()
    reject(ann, 0, 3)
    assert ann.result((0, 3, [ACCEPT])) is ErrorCode.INVALID_RECORD_STATE
    assert ann.result((4, 9, [RELEASE])) == 0
    assert ann.take() == [(4, 9, 2)]
    assert group.partition.window is not None
    assert group.partition.window.locks == 6
    talk.release_scans()
    assert group.origins() == [0, 1, 2, 3]


def test_very_many_dead_letters_are_sent_in_several_batches(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    group.rules.locks_max = 2_000
    for _ in range(3):
        produce(talk, "a", batch(400))
    ann.take(records=2_000)
    reject(ann, 0, 1_209)
    offsets: list[int] = []
    while found := read(fetch(talk, "dlq.g", len(offsets)).records):
        offsets += [each.offset for each in map(_origin, found)]
    assert offsets == list(range(1_210))


def _origin(record: Record) -> Origin:
    found = read_origin(record.headers)
    assert found is not None
    return found


def failing(group: Group, ann: Member) -> None:
    """Reject all records, and let several attempts pass."""
    ann.take()
    reject(ann, 0, 9)
    group.talk.pass_time(1_000)
    assert {*group.states().values()} == {DeliveryState.ARCHIVING}


def test_a_missing_topic_is_named_and_holds_nothing_up(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    group.dead = DeadLetterRules("dlq.other")
    failing(group, ann)
    (notice,) = group.notices()
    assert 'topic "dlq.other" does not exist: create it with' in notice.facts["problem"]
    produce(talk, "a", batch(5))
    assert ann.take() == [(10, 14, 1)]
    create_topic(talk, "dlq.other", 1, ENABLED)
    talk.pass_time(2_000)
    assert group.origins("dlq.other") == list(range(10))
    assert {*group.states().values()} <= {DeliveryState.AVAILABLE, DeliveryState.ARCHIVED}


def test_a_topic_must_allow_dead_letters(talk: Dialogue, group: Group, ann: Member) -> None:
    create_topic(talk, "dlq.plain")
    group.dead = DeadLetterRules("dlq.plain")
    failing(group, ann)
    assert "set its config errors.deadletterqueue.group.enable=true" in str(group.notices())
    assert group.letters("dlq.plain") == []
    group.dead = DeadLetterRules("dlq.g")
    talk.pass_time(30_000)
    assert group.origins() == list(range(10))


def test_attempts_go_on_with_growing_delays(talk: Dialogue, group: Group, ann: Member) -> None:
    group.dead = DeadLetterRules("dlq.other")
    failing(group, ann)
    for _ in range(40):
        talk.pass_time(30_000)
    assert 10 <= len(group.notices()) <= 22  # one a minute
    create_topic(talk, "dlq.other", 1, ENABLED)
    talk.pass_time(30_000)
    assert group.origins("dlq.other") == list(range(10))


@pytest.mark.parametrize("name", ["a", "__dlq.a", "other", "dlq.a"])
def test_a_topic_that_cannot_be_the_dead_letter_topic(
    talk: Dialogue, group: Group, name: str
) -> None:
    """Records are archived as without one: a topic never gets its own dead letters."""
    group.topic_id = create_topic(talk, "dlq.a", 1, ENABLED)
    group.dead = DeadLetterRules(name)
    produce(talk, "dlq.a", batch(10))
    ann = group.member()
    ann.take()
    reject(ann, 0, 4)
    assert len(read(fetch(talk, "dlq.a").records)) == 10
    (notice,) = group.notices()
    assert "cannot be" in notice.facts["problem"]


def test_a_topic_that_is_no_longer_configured(talk: Dialogue, group: Group, ann: Member) -> None:
    group.dead = DeadLetterRules("dlq.other")
    failing(group, ann)
    group.dead = None
    talk.pass_time(30_000)
    assert talk.node.sharing.partitions.dead_letters_of("g") == (0, 10)
    assert "has no dead-letter topic any more" in str(group.notices()[-1])


def test_a_record_that_is_too_large_goes_without_its_value(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    create_topic(talk, "dlq.small", 1, {**ENABLED, "max.message.bytes": "1000"})
    group.dead = DeadLetterRules("dlq.small")
    produce(talk, "a", batch(1, value=b"x" * 2_000))
    produce(talk, "a", batch(1))
    ann.take()
    reject(ann, 9, 11)
    letters = group.letters("dlq.small")
    assert [each.value for each in letters] == [b"v", None, b"v"]
    assert group.origins("dlq.small") == [9, 10, 11]
    assert WITHOUT_RECORD in _origin(letters[1]).message


def test_a_topic_that_is_too_small_for_any_dead_letter(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    create_topic(talk, "dlq.tiny", 1, {**ENABLED, "max.message.bytes": "100"})
    group.dead = DeadLetterRules("dlq.tiny")
    ann.take()
    reject(ann, 0, 9)
    assert talk.node.sharing.partitions.dead_letters_of("g") == (0, 10)
    (notice,) = group.notices()
    assert "max.message.bytes" in notice.facts["problem"]


def test_a_topic_that_is_deleted_and_made_anew(talk: Dialogue, group: Group, ann: Member) -> None:
    ann.take()
    reject(ann, 0, 1)
    delete_topic(talk, "dlq.g")
    reject(ann, 2, 3)
    create_topic(talk, "dlq.g", 1, ENABLED)
    talk.pass_time(1_000)
    assert group.origins() == [2, 3]


def test_records_whose_source_is_gone(talk: Dialogue, group: Group, ann: Member) -> None:
    """Records that the log has deleted are no longer in the window, and nothing waits for them."""
    group.dead = DeadLetterRules("dlq.other")
    failing(group, ann)
    node_partition = talk.node.find("a", 0)
    produce(talk, "a", batch(5))
    node_partition.delete_before(10)
    talk.settle()
    assert ann.take() == [(10, 14, 1)]
    create_topic(talk, "dlq.other", 1, ENABLED)
    talk.pass_time(30_000)
    assert group.origins("dlq.other") == []


def test_a_dead_topic_never_stops_the_source(
    talk: Dialogue, group: Group, ann: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the window is long, the oldest records are archived without dead letters."""
    monkeypatch.setattr("barnabas.node.share.dead_letter_sender.WAITING_SPAN_MAX", 25)
    group.dead = DeadLetterRules("dlq.other")
    failing(group, ann)
    for first in range(10, 60, 10):
        produce(talk, "a", batch(10))
        assert ann.take() == [(first, first + 9, 1)]
        reject(ann, first, first + 9)
    window = group.partition.window
    assert window is not None
    assert window.end - window.start == 25
    assert talk.node.sharing.partitions.dead_letters_of("g") == (0, 35)
    create_topic(talk, "dlq.other", 1, ENABLED)
    talk.pass_time(30_000)
    assert group.origins("dlq.other") == list(range(35, 60))


def test_a_flood_of_dead_letters_pauses_the_delivery(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    group.dead = DeadLetterRules("dlq.g", flood_limit=5)
    ann.take(records=5, exact=True)
    reject(ann, 0, 4)
    assert ann.take(records=5, exact=True) == []
    fetch_exchange = ann.send(wait_ms=120_000, records=5, exact=True)
    assert fetch_exchange.waiting
    assert "pauses" in str(talk.notices)
    talk.pass_time(60_000)
    ((partition,),) = [topic.partitions for topic in fetch_exchange.answer.responses]
    assert [each.first_offset for each in partition.acquired_records] == [5]


def test_a_new_leader_sends_what_waits(talk: Dialogue, group: Group, ann: Member) -> None:
    talk.hold_scans = True
    ann.take()
    reject(ann, 0, 4)
    talk.scans.clear()  # the leader died
    talk.hold_scans = False
    group.lead()
    assert group.member("bob").take() == [(5, 9, 1)]
    assert group.origins() == [0, 1, 2, 3, 4]


def test_dead_letters_of_another_broker_are_sent_again_only_once(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    """A leader dies before it has stored that its batch was written."""
    ann.take()
    reject(ann, 0, 1)
    group.stored.holds_writes = True
    exchange = ann.acknowledge((2, 3, [REJECT]))
    group.stored.end_write()  # the acknowledgement
    talk.settle()
    group.stored.end_write()  # the shipment
    talk.settle()
    assert not exchange.waiting
    assert group.origins() == [0, 1, 2, 3]
    group.stored.held.clear()  # ARCHIVED was not stored
    group.stored.holds_writes = False
    assert group.states()[2] is DeliveryState.ARCHIVING
    group.lead()
    bob = group.member("bob")
    assert bob.take() == [(4, 9, 1)]
    assert group.origins() == [0, 1, 2, 3]
    assert DeliveryState.ARCHIVING not in group.states().values()
    assert bob.result((4, 9, [REJECT])) == 0
    assert group.origins() == list(range(10))


def test_a_disk_that_is_full(
    talk: Dialogue, group: Group, ann: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    log = talk.node.find("dlq.g", 0).log
    with monkeypatch.context() as patched:
        patched.setattr(type(log), "append", full)
        failing(group, ann)
    assert group.letters() == []
    talk.pass_time(30_000)
    assert group.origins() == list(range(10))


def test_a_dead_letter_partition_that_has_lost_the_sequence(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    """As after an unclean election: the batch gets another producer id, and is written once."""
    ann.take()
    reject(ann, 0, 1)
    (producer,) = talk.node.find("dlq.g", 0).log.producers.by_id.values()
    producer.batches.clear()
    reject(ann, 2, 9)
    assert group.origins() == [0, 1]
    talk.pass_time(1_000)
    assert group.origins() == list(range(10))
    assert len(talk.node.find("dlq.g", 0).log.producers.by_id) == 2


def test_a_topic_with_a_codec_of_its_own(talk: Dialogue, group: Group, ann: Member) -> None:
    """The batch is compressed in steps, in the queue of its partition."""
    create_topic(talk, "dlq.zstd", 1, {**ENABLED, "compression.type": "zstd"})
    group.dead = DeadLetterRules("dlq.zstd")
    group.rules.locks_max = 2_000
    produce(talk, "a", batch(400))
    ann.take()
    reject(ann, 0, 409)
    assert group.origins("dlq.zstd") == list(range(410))


def test_a_compacted_topic_refuses_records_without_keys(
    talk: Dialogue, group: Group, ann: Member
) -> None:
    create_topic(talk, "dlq.keys", 1, {**ENABLED, "cleanup.policy": "compact"})
    produce(talk, "a", batch(1, key=None))
    group.dead = DeadLetterRules("dlq.keys")
    ann.take()
    reject(ann, 0, 10)
    talk.pass_time(1_000)
    (notice,) = group.notices()
    assert "key" in notice.facts["problem"]
    assert group.letters("dlq.keys") == []


def test_markers_are_no_dead_letters(talk: Dialogue, group: Group, ann: Member) -> None:
    control = 0x30
    partition = talk.node.find("a", 0)
    marker = build(
        [Record(0, START_MS, b"\0\0\0\1", b"\0\0\0\0\0\0")],
        attributes=control,
        producer_id=99,
        producer_epoch=0,
    )
    partition.leader.append_own(marker)
    talk.settle()
    produce(talk, "a", batch(1))
    group.rules.deliveries_max = 1
    group.dead = DeadLetterRules("dlq.g")
    ann.take()
    talk.pass_time(LOCK_MS)
    assert group.origins() == [*range(10), 11]
    assert DeliveryState.ARCHIVING not in group.states().values()


def test_a_clock_that_jumps_changes_nothing(talk: Dialogue, group: Group, ann: Member) -> None:
    ann.take()
    reject(ann, 0, 4)
    for hour_ms in (3_600_000, -7_200_000):
        talk.now_ms += hour_ms
        talk.node.timers.wall_ms = talk.now_ms
        reject(ann, 5 if hour_ms > 0 else 6, 5 if hour_ms > 0 else 6)
    assert group.origins() == [0, 1, 2, 3, 4, 5, 6]


def test_the_config_of_the_group_counts(talk: Dialogue) -> None:
    """The node's own share groups, with the state that it stores itself."""
    topic_id = create_topic(talk, "orders")
    create_topic(talk, "dlq.orders", 1, ENABLED)
    talk.node.image.group_configs["g"] = {TOPIC_NAME: "dlq.orders"}
    talk.node.share_states.initialize("g", TopicId(topic_id), {0: 0}, 0)
    talk.settle()
    produce(talk, "orders", batch(5))
    ann = Member(talk, topic_id)
    ann.send()
    assert ann.take() == [(0, 4, 1)]
    reject(ann, 1, 2)
    found = [read_origin(each.headers) for each in read(fetch(talk, "dlq.orders").records)]
    assert [each.offset for each in found if each is not None] == [1, 2]


def test_a_group_that_is_deleted_sends_no_more(talk: Dialogue, group: Group, ann: Member) -> None:
    talk.hold_scans = True
    ann.take()
    reject(ann, 0, 9)
    group.stored.holds_writes = True
    talk.release_scans()
    group.stored.end_write(ErrorCode.INVALID_REQUEST)  # there is no such state
    talk.settle()
    writes = group.stored.writes
    for _ in range(5):
        talk.pass_time(30_000)
    assert group.stored.writes == writes
    assert group.letters() == []


def test_a_share_partition_waits_for_its_turn(
    talk: Dialogue, group: Group, ann: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it waits for may be given up meanwhile."""
    monkeypatch.setattr("barnabas.node.share.dead_letter_topics.SENDERS_MAX", 1)
    produce(talk, "a", batch(5), partition=1)
    talk.hold_scans = True
    ann.take(partitions=(0, 1))
    group.rules.deliveries_max = 1
    talk.pass_time(LOCK_MS)
    (scan,) = [each for each in talk.scans if each.lane == "dead letters"]
    assert scan.owner in {"a-0", "a-1"}
    for found in talk.node.sharing.partitions._by_key.values():
        if str(found.partition.name) != scan.owner:
            found.archive([(0, 20)])
    talk.release_scans()
    talk.pass_time(1)
    letters = group.letters() + group.letters(partition=1)
    assert len(letters) == (10 if scan.owner == "a-0" else 5)
