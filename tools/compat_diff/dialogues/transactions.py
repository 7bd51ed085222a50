"""Dialogues about transactions: producer ids, partitions and offsets, commits and aborts, wrong
epochs.
"""

from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.protocol.records import TRANSACTIONAL
from tests.support.talk.requests import batch
from tools.compat_diff.dialogues.asking import (
    create,
    each_version,
    fetch,
    init_producer,
    list_offsets,
    produce,
    topic,
)
from tools.compat_diff.dialogues.committing import fetch_offsets
from tools.compat_diff.dialogues.groups import Entering
from tools.compat_diff.steps import Ask, Dialogue, Pause, Scene, Talk

Producer = tuple[int, int]


def add_partitions(
    tid: str,
    producer: Producer,
    *places: tuple[str, list[int]],
    version: int = 3,
    verify: bool = False,
) -> Ask:
    """Add partitions to a transaction."""
    topics = [AddPartitionsToTxnTopic(name=name, partitions=p) for name, p in places]
    if version < 4:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=tid,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics,
        )
        return Ask(request, version)
    entry = AddPartitionsToTxnTransaction(
        transactional_id=tid,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify,
        topics=topics,
    )
    return Ask(AddPartitionsToTxnRequest(transactions=[entry]), version)


def add_offsets(tid: str, producer: Producer, group: str, version: int = 3) -> Ask:
    """Add a group's offsets to a transaction."""
    request = AddOffsetsToTxnRequest(
        transactional_id=tid, producer_id=producer[0], producer_epoch=producer[1], group_id=group
    )
    return Ask(request, version)


def end(tid: str, producer: Producer, *, commit: bool = True, version: int = 3) -> Ask:
    """End a transaction."""
    request = EndTxnRequest(
        transactional_id=tid, producer_id=producer[0], producer_epoch=producer[1], committed=commit
    )
    return Ask(request, version)


def commit_offsets(
    tid: str,
    producer: Producer,
    group: str,
    *places: tuple[str, int, int],
    version: int = 3,
    member: tuple[int, str] = (-1, ""),
    instance: str | None = None,
    note: str | None = "",
) -> Ask:
    """Commit offsets in a transaction."""
    topics = [
        TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=note
                )
            ],
        )
        for name, index, offset in places
    ]
    request = TxnOffsetCommitRequest(
        transactional_id=tid,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=topics,
    )
    if version >= 3:
        request.generation_id, request.member_id = member
        request.group_instance_id = instance
    return Ask(request, version)


def in_transaction(
    name: str, tid: str, producer: Producer, sequence: int, version: int = 11
) -> Ask:
    """Send two records of a transaction."""
    content = batch(2, attributes=TRANSACTIONAL, producer=(*producer, sequence))
    return produce(name, content, version=version, transactional_id=tid)


def describe(*tids: str) -> Ask:
    """Describe transactions."""
    return Ask(DescribeTransactionsRequest(transactional_ids=list(tids)), 0)


def producers(*places: tuple[str, list[int]]) -> Ask:
    """Describe the producers of partitions."""
    topics = [TopicRequest(name=name, partition_indexes=p) for name, p in places]
    return Ask(DescribeProducersRequest(topics=topics), 0)


class Started:
    """A transactional producer and its id and epoch."""

    def __init__(self, tid: str) -> None:
        self.tid = tid
        self.producer: Producer = (-1, -1)

    def walk(self) -> Talk:
        """Request a producer id."""
        answer = yield init_producer(self.tid)
        self.producer = (answer.first("producer_id", -1), answer.first("producer_epoch", -1))


def initialising(scene: Scene, version: int) -> Talk:
    """Request producer ids, with and without a transactional id, repeated, with old epochs."""
    tid = scene.name("t")
    yield init_producer(None, version=version)
    yield init_producer(None, version=version)
    yield init_producer("", version=version)
    for timeout_ms in (0, -1, 900_001, 1):
        yield init_producer(scene.name("wrong"), version=version, timeout_ms=timeout_ms)
    yield init_producer(None, version=version, timeout_ms=0)
    answer = yield init_producer(tid, version=version)
    pid = answer.first("producer_id", -1)
    yield init_producer(tid, version=version)
    if version >= 3:
        for producer in ((pid, 1), (pid, 1), (pid, 0), (pid, 9), (pid + 1, 0), (pid, -1), (-1, 3)):
            yield init_producer(tid, version=version, producer=producer)
            yield init_producer(None, version=version, producer=producer)
        yield init_producer(scene.name("new"), version=version, producer=(pid, 0))
    yield describe(tid)


def adding(scene: Scene, version: int) -> Talk:
    """Add partitions in one version."""
    a, tid = scene.name("a"), scene.name("t")
    yield create(topic(a, 2))
    yield add_partitions(tid, (5, 0), (a, [0]), version=version)
    me = Started(tid)
    yield from me.walk()
    pid, epoch = me.producer
    yield add_partitions("", me.producer, (a, [0]), version=version)
    yield add_partitions(tid, (pid, epoch + 1), (a, [0]), version=version)
    yield add_partitions(tid, (pid, epoch - 1), (a, [0]), version=version)
    yield add_partitions(tid, (pid + 1, epoch), (a, [0]), version=version)
    yield add_partitions(tid, me.producer, (scene.name("unknown"), [0]), (a, [0]), version=version)
    yield add_partitions(tid, me.producer, (a, [7]), version=version)
    yield add_partitions(tid, me.producer, version=version)
    if version >= 4:
        yield add_partitions(tid, me.producer, (a, [0]), version=version, verify=True)
        yield Ask(AddPartitionsToTxnRequest(transactions=[]), version)
    yield add_partitions(tid, me.producer, (a, [0, 1]), version=version)
    yield add_partitions(tid, me.producer, (a, [0]), version=version)
    if version >= 4:
        yield add_partitions(tid, me.producer, (a, [0, 1]), version=version, verify=True)
    yield describe(tid)
    yield end(tid, me.producer, commit=False)
    yield Pause(50)
    yield describe(tid)


def ending(scene: Scene, version: int) -> Talk:
    """End transactions in one version: committed, aborted, empty, twice, of another epoch."""
    a, tid = scene.name("a"), scene.name("t")
    yield create(topic(a))
    yield end(tid, (5, 0), version=version)
    me = Started(tid)
    yield from me.walk()
    pid, epoch = me.producer
    yield end(tid, me.producer, version=version)
    yield end(tid, me.producer, commit=False, version=version)
    yield describe(tid)
    if version >= 5:
        again = yield init_producer(tid)
        pid, epoch = again.first("producer_id", -1), again.first("producer_epoch", -1)
    sequence = 0
    for commit in (True, False):
        yield add_partitions(tid, (pid, epoch), (a, [0]))
        yield in_transaction(a, tid, (pid, epoch), sequence)
        yield fetch(a, 0, isolation_level=1)
        yield end(tid, (pid, epoch + 1), commit=commit, version=version)
        yield end(tid, (pid + 1, epoch), commit=commit, version=version)
        answer = yield end(tid, (pid, epoch), commit=commit, version=version)
        yield Pause(50)
        yield end(tid, (pid, epoch), commit=commit, version=version)
        yield end(tid, (pid, epoch), commit=not commit, version=version)
        yield describe(tid)
        if version >= 5:
            pid = answer.first("producer_id", pid)
            epoch = answer.first("producer_epoch", epoch)
        else:
            sequence += 2
    yield fetch(a, 0, isolation_level=1)
    yield fetch(a, 0)
    yield from list_offsets(a, -1, isolation=1)
    yield producers((a, [0]))
    yield end("", (pid, epoch), version=version)


def second_version(scene: Scene) -> Talk:
    """A transaction of version 2: partitions are added by producing to them."""
    a, tid, g = scene.name("a"), scene.name("t"), scene.name("g")
    made = yield create(topic(a, 2))
    topic_id = made.first("topic_id", bytes(16))
    me = Started(tid)
    yield from me.walk()
    pid, epoch = me.producer

    def send(sequence: int, producer: Producer, partition: int = 0) -> Ask:
        content = batch(2, attributes=TRANSACTIONAL, producer=(*producer, sequence))
        return produce(topic_id, content, version=13, partition=partition, transactional_id=tid)

    yield send(0, (pid, epoch))
    yield send(2, (pid, epoch))
    yield send(0, (pid, epoch), partition=1)
    yield describe(tid)
    yield commit_offsets(tid, (pid, epoch), g, (a, 0, 7), version=5)
    yield fetch_offsets(g, [(a, [0])], stable=True)
    answer = yield end(tid, (pid, epoch), version=5)
    pid, new = answer.first("producer_id", pid), answer.first("producer_epoch", epoch)
    yield Pause(50)
    yield fetch_offsets(g, [(a, [0])])
    yield send(4, (pid, epoch))
    yield send(0, (pid, new))
    yield end(tid, (pid, new), commit=False, version=5)
    yield Pause(50)
    yield fetch(a, 0, isolation_level=1)
    yield producers((a, [0, 1]))


def offsets(scene: Scene, version: int) -> Talk:
    """Commit offsets in transactions, in one version."""
    a, tid, g = scene.name("a"), scene.name("t"), scene.name("g")
    yield create(topic(a, 2))
    me = Started(tid)
    yield from me.walk()
    pid, epoch = me.producer
    yield commit_offsets(tid, me.producer, g, (a, 0, 5), version=version)
    yield add_offsets(tid, me.producer, g)
    yield commit_offsets(tid, me.producer, g, (a, 0, 5), version=version)
    yield commit_offsets(tid, (pid, epoch + 1), g, (a, 0, 6), version=version)
    yield commit_offsets(tid, (pid, epoch - 1), g, (a, 0, 6), version=version)
    yield commit_offsets(tid, (pid + 1, epoch), g, (a, 0, 6), version=version)
    yield commit_offsets(tid, me.producer, g, (a, 1, -5), version=version)
    yield commit_offsets(tid, me.producer, g, (a, 7, 1), version=version)
    yield commit_offsets(tid, me.producer, g, (scene.name("unknown"), 0, 1), version=version)
    yield commit_offsets(tid, me.producer, g, (a, 1, 1), version=version, note="n" * 4097)
    yield commit_offsets(tid, me.producer, g, version=version)
    yield commit_offsets("", me.producer, g, (a, 0, 5), version=version)
    if version >= 3:
        for member in ((3, "stranger"), (-1, "stranger"), (3, "")):
            yield commit_offsets(tid, me.producer, g, (a, 0, 9), version=version, member=member)
    yield fetch_offsets(g, [(a, [0, 1])])
    yield fetch_offsets(g, [(a, [0, 1])], version=8, stable=True)
    yield end(tid, me.producer, commit=version % 2 == 0)
    yield Pause(50)
    yield fetch_offsets(g, [(a, [0, 1])], stable=True)


def offsets_of_members(scene: Scene) -> Talk:
    """Commit a member's offsets in a transaction: of its generation, and of others."""
    a, tid, g = scene.name("a"), scene.name("t"), scene.name("g")
    yield create(topic(a))
    member = Entering(g, 5)
    yield from member.walk()
    me = Started(tid)
    yield from me.walk()
    yield add_offsets(tid, me.producer, g)
    generation = member.generation
    for claimed in (
        (generation, member.member),
        (generation + 1, member.member),
        (generation, "stranger"),
        (-1, ""),
    ):
        yield commit_offsets(tid, me.producer, g, (a, 0, 5), member=claimed)
    yield commit_offsets(
        tid, me.producer, g, (a, 0, 5), member=(generation, member.member), instance="i"
    )
    yield end(tid, me.producer)


def adding_offsets(scene: Scene, version: int) -> Talk:
    """Add a group's offsets in one version."""
    tid, g = scene.name("t"), scene.name("g")
    yield add_offsets(tid, (5, 0), g, version)
    me = Started(tid)
    yield from me.walk()
    pid, epoch = me.producer
    yield add_offsets(tid, (pid, epoch + 1), g, version)
    yield add_offsets(tid, (pid + 1, epoch), g, version)
    yield add_offsets("", me.producer, g, version)
    yield add_offsets(tid, me.producer, g, version)
    yield add_offsets(tid, me.producer, g, version)
    yield describe(tid)
    yield end(tid, me.producer)


def fencing(scene: Scene) -> Talk:
    """A second producer of the same transactional id fences the first."""
    a, tid = scene.name("a"), scene.name("t")
    yield create(topic(a))
    old, new = Started(tid), Started(tid)
    yield from old.walk()
    yield add_partitions(tid, old.producer, (a, [0]))
    yield in_transaction(a, tid, old.producer, 0)
    yield from new.walk()
    yield Pause(50)
    yield in_transaction(a, tid, old.producer, 2)
    for version in (0, 1, 3, 4):
        yield add_partitions(tid, old.producer, (a, [0]), version=version)
        yield end(tid, old.producer, version=version)
        yield add_offsets(tid, old.producer, scene.name("g"), version)
        yield commit_offsets(tid, old.producer, scene.name("g"), (a, 0, 1), version=version)
    for version in (3, 4):
        yield init_producer(tid, version=version, producer=old.producer)
    yield in_transaction(a, tid, new.producer, 0)
    yield add_partitions(tid, new.producer, (a, [0]))
    yield in_transaction(a, tid, new.producer, 0)
    yield end(tid, new.producer)
    yield Pause(50)
    yield fetch(a, 0, isolation_level=1)


def markers(scene: Scene, version: int) -> Talk:
    """Write markers as Kafka's tool for hanging transactions does."""
    a, tid = scene.name("a"), scene.name("t")
    yield create(topic(a, 2))
    me = Started(tid)
    yield from me.walk()
    yield add_partitions(tid, me.producer, (a, [0]))
    yield in_transaction(a, tid, me.producer, 0)

    def write(producer: Producer, *places: tuple[str, list[int]], epoch: int = 0) -> Ask:
        marker = WritableTxnMarker(
            producer_id=producer[0],
            producer_epoch=producer[1],
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=n, partition_indexes=p) for n, p in places],
            coordinator_epoch=epoch,
        )
        return Ask(WriteTxnMarkersRequest(markers=[marker]), version)

    yield Ask(WriteTxnMarkersRequest(markers=[]), version)
    yield write(me.producer, (a, [7]), (scene.name("unknown"), [0]))
    yield write((me.producer[0], me.producer[1] - 1), (a, [0]))
    yield write(me.producer, (a, [0]))
    yield write(me.producer, (a, [0]), epoch=-1)
    yield write((me.producer[0] + 5000, 0), (a, [1]))
    yield producers((a, [0, 1]))
    yield from list_offsets(a, -1)
    yield from list_offsets(a, -1, isolation=1)
    yield from list_offsets(a, -1, partition=1)


def describing(scene: Scene, version: int) -> Talk:
    """List and describe transactions and producers."""
    a, tid = scene.name("a"), scene.name("t")
    yield create(topic(a, 2))
    yield describe()
    yield describe(scene.name("unknown"), "")
    yield producers((a, [0, 7]), (scene.name("unknown"), [0]))
    yield producers()
    me = Started(tid)
    yield from me.walk()
    yield describe(tid, tid)
    yield add_partitions(tid, me.producer, (a, [0, 1]))
    yield in_transaction(a, tid, me.producer, 0)
    yield describe(tid)
    yield producers((a, [0, 1]))
    filters: list[dict[str, object]] = [
        {},
        {"state_filters": ["Ongoing"]},
        {"state_filters": ["Empty", "Nonsense"]},
        {"state_filters": ["ongoing"]},
        {"producer_id_filters": [me.producer[0]]},
        {"producer_id_filters": [me.producer[0] + 5000]},
        {"state_filters": ["CompleteCommit"], "producer_id_filters": [me.producer[0]]},
    ]
    if version >= 1:
        filters += [{"duration_filter": n} for n in (0, 100_000, -1, -5)]
    if version >= 2:
        patterns = (scene.name(".*"), "", "nothing", "(", tid)
        filters += [{"transactional_id_pattern": pattern} for pattern in patterns]
    for wanted in filters:
        yield Ask(ListTransactionsRequest(**wanted), version)  # type: ignore[arg-type]
    yield end(tid, me.producer)


def finding(scene: Scene, version: int) -> Talk:
    """Find coordinators."""
    for kind in (0, 1, 2, 3, -1) if version else (0,):
        for key in (scene.name("g"), ""):
            if version < 4:
                request = FindCoordinatorRequest(key=key)
            else:
                request = FindCoordinatorRequest(coordinator_keys=[key])
            if version >= 1:
                request.key_type = kind
            yield Ask(request, version)
    if version >= 4:
        yield Ask(FindCoordinatorRequest(coordinator_keys=[]), version)
        yield Ask(FindCoordinatorRequest(coordinator_keys=["a", "b", "a"]), version)


WRITTEN: dict[str, Dialogue] = {
    **each_version("transactions/init", "InitProducerId", initialising),
    **each_version("transactions/add-partitions", "AddPartitionsToTxn", adding),
    **each_version("transactions/end", "EndTxn", ending),
    "transactions/second-version": second_version,
    **each_version("transactions/offsets", "TxnOffsetCommit", offsets),
    "transactions/offsets-of-members": offsets_of_members,
    **each_version("transactions/add-offsets", "AddOffsetsToTxn", adding_offsets),
    "transactions/fencing": fencing,
    **each_version("transactions/markers", "WriteTxnMarkers", markers),
    **each_version("transactions/describe", "ListTransactions", describing),
    **each_version("coordinators/find", "FindCoordinator", finding),
}
