"""Rights along the ways that requests take: fast path, waits, forwarding, listings, by topic id."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.effects import Ask
from barnabas.handlers.registry import dispatch
from barnabas.handlers.shapes import Shapes
from barnabas.model.callers import Caller
from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.ids import NO_TOPIC_ID, NodeId
from barnabas.model.permissions import CLUSTER_NAME, Operation, ResourceType
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import decode_exact
from barnabas.protocol.headers import response_header
from barnabas.protocol.messages import produce as messages
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.support.talk.dialogue import PEER, Dialogue
from tests.support.talk.offset_requests import (
    codes,
    commit_request,
    fetch_group,
    find_coordinator,
)
from tests.support.talk.offset_requests import (
    fetch_request as offset_request,
)
from tests.support.talk.requests import (
    batch,
    create_topic,
    fetch,
    fetch_request,
    produce,
    send_produce,
)
from tests.support.talk.rights import (
    ADMIN,
    OPEN,
    SECRET,
    SECURED,
    acl,
    caller,
    set_acls,
    set_role,
)
from tests.support.talk.together import Together

T = ErrorCode.TOPIC_AUTHORIZATION_FAILED
READ, WRITE, DESCRIBE, DELETE, CREATE = (
    (operation, ResourceType.TOPIC)
    for operation in (
        Operation.READ,
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.CREATE,
    )
)
VERSION = 9
READ_GROUP = (Operation.READ, ResourceType.GROUP)


class Guarded:
    """A broker with two topics, and alice who talks to it."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.talk = talk = Dialogue(folder, {**SECURED, **settings})
        self.secret = self.as_admin(lambda: create_topic(talk, SECRET))
        self.opened = self.as_admin(lambda: create_topic(talk, OPEN))

    def as_admin(self, act: Any) -> Any:
        self.talk.caller = caller(ADMIN)
        done = act()
        self.talk.caller = caller()
        return done


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path)


# --- the fast path ---


class Connection:
    """Sends the same Produce request again and again, by the fast path where it is known."""

    def __init__(self, talk: Dialogue, shapes: Shapes, who: Caller) -> None:
        self._talk = talk
        self._caller = who
        self._shapes = shapes.of(who)
        self._prefix_bytes = 0
        self.went_fast = False

    def produce(self, topic: str) -> int:
        """Send one batch; return the error code."""
        talk = self._talk
        request = frame_of(talk, topic)
        content = memoryview(bytearray(request))
        known = None
        if self._prefix_bytes:
            known = self._shapes.answer(content, self._prefix_bytes, talk.now_ms)
        self.went_fast = known is not None
        if known is not None:
            return 0  # whatever a shape refuses is left to the handler
        answer, context = dispatch(talk.node, content, self._caller, talk.now_ms, self._shapes)
        self._prefix_bytes = context.prefix_bytes
        talk.settle()
        assert isinstance(answer, list)
        content_of_answer = b"".join(bytes(chunk) for chunk in answer)  # type: ignore[arg-type]
        head = len(response_header(ApiKey.PRODUCE, VERSION, 0))
        decoded = decode_exact(messages.ProduceResponse, VERSION, content_of_answer[head:])
        code: int = decoded.responses[0].partition_responses[0].error_code
        return code


def frame_of(talk: Dialogue, topic: str) -> bytes:
    from barnabas.protocol.messages import produce as messages

    part = messages.PartitionProduceData(index=0, records=bytes(batch()))
    data = messages.TopicProduceData(name=topic, partition_data=[part])
    request = messages.ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data])
    return talk.frame(request, VERSION)


def test_a_shape_does_not_outlive_the_right(guarded: Guarded) -> None:
    talk = guarded.talk
    shapes = Shapes(talk.node)
    alice = Connection(talk, shapes, caller())
    set_acls(talk, [acl(WRITE, SECRET)])
    assert [alice.produce(SECRET) for _ in range(3)] == [0, 0, 0]
    assert alice.went_fast
    set_acls(talk, [acl(WRITE, OPEN)])
    assert alice.produce(SECRET) == T
    assert alice.produce(SECRET) == T
    assert not alice.went_fast


def test_a_denied_request_is_not_learnt(guarded: Guarded) -> None:
    talk = guarded.talk
    alice = Connection(talk, Shapes(talk.node), caller())
    assert [alice.produce(SECRET) for _ in range(3)] == [T, T, T]
    assert talk.node.by_topic_name[SECRET][0].log.end_offset == 0


@pytest.mark.parametrize(
    "other", [caller(ADMIN), caller(host="10.0.0.2")], ids=["another principal", "another host"]
)
def test_a_shape_is_of_one_principal_on_one_host(guarded: Guarded, other: Caller) -> None:
    talk = guarded.talk
    shapes = Shapes(talk.node)
    set_acls(talk, [acl(WRITE, SECRET, host="10.0.0.1")])
    alice, second = Connection(talk, shapes, caller()), Connection(talk, shapes, other)
    for _ in range(3):
        alice.produce(SECRET)
    assert alice.went_fast
    second.produce(SECRET)
    assert not second.went_fast


# --- fetches that wait ---


def wait_for_records(talk: Dialogue, *, session: bool) -> Any:
    epoch = 0 if session else -1
    request = fetch_request(SECRET, 0, session_epoch=epoch, max_wait_ms=10_000)
    exchange = talk.send(request, 12)
    assert exchange.waiting
    return exchange


@pytest.mark.parametrize("session", [False, True])
def test_a_waiting_fetch_ends_when_the_right_is_revoked(guarded: Guarded, *, session: bool) -> None:
    talk = guarded.talk
    set_acls(talk, [acl(READ, SECRET)])
    exchange = wait_for_records(talk, session=session)
    set_acls(talk, [acl(READ, OPEN)])
    ((result,),) = [topic.partitions for topic in exchange.answer.responses]
    assert result.error_code == T
    assert not result.records


def test_a_waiting_fetch_of_another_consumer_goes_on(guarded: Guarded) -> None:
    talk = guarded.talk
    set_acls(talk, [acl(READ, SECRET)])
    exchange = wait_for_records(talk, session=False)
    talk.node.commit([acl(READ, OPEN, principal="User:bob")], talk.now_ms)
    talk.settle()
    assert exchange.waiting
    guarded.as_admin(lambda: produce(talk, SECRET))
    ((result,),) = [topic.partitions for topic in exchange.answer.responses]
    assert result.error_code == 0
    assert result.records


def test_a_session_is_decided_anew_with_each_fetch(guarded: Guarded) -> None:
    talk = guarded.talk
    set_acls(talk, [acl(READ, SECRET)])
    first = talk.ask(fetch_request(SECRET, 0, session_epoch=0), 12)
    set_acls(talk, [])
    request = FetchRequest(
        session_id=first.session_id, session_epoch=1, max_wait_ms=0, max_bytes=1 << 20
    )
    ((result,),) = [topic.partitions for topic in talk.ask(request, 12).responses]
    assert result.error_code == T
    set_acls(talk, [acl(READ, SECRET)])
    guarded.as_admin(lambda: produce(talk, SECRET))
    request.session_epoch = 2
    ((result,),) = [topic.partitions for topic in talk.ask(request, 12).responses]
    assert result.error_code == 0


# --- what a caller learns ---


@pytest.mark.parametrize("name", [SECRET, "absent"])
def test_a_hidden_topic_looks_like_an_absent_one(guarded: Guarded, name: str) -> None:
    talk = guarded.talk
    set_acls(talk, [acl(READ, OPEN)])
    (topic,) = talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (T, name, NO_TOPIC_ID)
    assert (topic.partitions, topic.topic_authorized_operations) == ([], -(1 << 31))
    assert produce(talk, name).error_code == T
    assert fetch(talk, name).error_code == T
    (deleted,) = talk.ask(DeleteTopicsRequest(topic_names=[name]), 5).responses
    assert (deleted.error_code, deleted.name) == (T, name)
    assert "absent" not in talk.node.image.topics, "it was created automatically"


def test_a_list_of_all_leaves_hidden_topics_out(guarded: Guarded) -> None:
    talk = guarded.talk
    set_acls(talk, [acl(DESCRIBE, OPEN)])
    topics = talk.ask(MetadataRequest(topics=None), 12).topics
    assert [topic.name for topic in topics] == [OPEN]


def test_by_id_a_hidden_topic_has_no_name(guarded: Guarded) -> None:
    talk = guarded.talk
    wanted = MetadataRequestTopic(name=None, topic_id=guarded.secret)
    (topic,) = talk.ask(MetadataRequest(topics=[wanted]), 12).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (T, None, guarded.secret)
    states = [DeleteTopicState(name=None, topic_id=guarded.secret)] * 2
    for deleted in talk.ask(DeleteTopicsRequest(topics=states), 6).responses:
        assert (deleted.error_code, deleted.name) == (T, None)
        assert SECRET not in (deleted.error_message or "")
    set_acls(talk, [acl(DESCRIBE, SECRET)])
    (deleted,) = talk.ask(DeleteTopicsRequest(topics=states[:1]), 6).responses
    assert (deleted.error_code, deleted.name) == (T, SECRET)


def test_an_unknown_id_is_unknown_before_anything_else(guarded: Guarded) -> None:
    unknown = bytes(range(16))
    assert fetch(guarded.talk, unknown).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert produce(guarded.talk, unknown).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_who_may_describe_learns_that_a_topic_is_absent(guarded: Guarded) -> None:
    talk = guarded.talk
    set_acls(talk, [acl(DESCRIBE, "absent")])
    (deleted,) = talk.ask(DeleteTopicsRequest(topic_names=["absent"]), 5).responses
    assert deleted.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_creating_automatically_needs_the_right_to_create(guarded: Guarded) -> None:
    talk = guarded.talk
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True
    )
    set_acls(talk, [acl(READ, "new")])
    (topic,) = talk.ask(asked, 12).topics
    assert topic.error_code == T
    assert "new" not in talk.node.image.topics
    set_acls(talk, [acl(READ, "new"), acl(CREATE, "ne", prefixed=True)])
    (topic,) = talk.ask(asked, 12).topics
    assert topic.error_code == 0


def test_a_refused_batch_without_acks_closes_the_connection(guarded: Guarded) -> None:
    with pytest.raises(WireError, match="TOPIC_AUTHORIZATION_FAILED"):
        send_produce(guarded.talk, SECRET, batch(), acks=0, version=9)


def test_a_transactional_batch_needs_a_transactional_id(guarded: Guarded) -> None:
    talk = guarded.talk
    set_acls(talk, [acl(WRITE, SECRET)])
    answer = produce(talk, SECRET, batch(attributes=0x10, producer=(1, 0, 0)), version=9)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_producer_without_an_id_may_write_to_any_topic(guarded: Guarded) -> None:
    talk, request = guarded.talk, InitProducerIdRequest(transactional_id=None)
    assert talk.ask(request).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    set_acls(talk, [acl(WRITE, "anything")])
    assert talk.ask(request).error_code == 0
    set_acls(talk, [acl((Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER), CLUSTER_NAME)])
    assert talk.ask(request).error_code == 0


def test_commits_are_refused_topic_by_topic_in_order(guarded: Guarded) -> None:
    talk = guarded.talk
    guarded.as_admin(lambda: find_coordinator(talk))
    set_acls(talk, [acl(READ_GROUP, "g"), acl(READ, OPEN)])
    answer = talk.ask(commit_request("g", {(SECRET, 0): 1, (OPEN, 0): 2, ("absent", 0): 3}), 9)
    assert codes(answer) == {(SECRET, 0): T, (OPEN, 0): 0, ("absent", 0): T}
    assert [topic.name for topic in answer.topics] == [SECRET, OPEN, "absent"]


def test_all_offsets_of_a_group_leave_hidden_topics_out(guarded: Guarded) -> None:
    talk = guarded.talk
    guarded.as_admin(lambda: find_coordinator(talk))
    guarded.as_admin(lambda: talk.ask(commit_request("g", {(SECRET, 0): 1, (OPEN, 0): 2}), 9))
    set_acls(talk, [acl(READ_GROUP, "g"), acl(READ, OPEN)])
    asked: OffsetFetchRequest = offset_request(fetch_group("g", None), 9)
    (group,) = talk.ask(asked, 9).groups
    assert [topic.name for topic in group.topics] == [OPEN]


def test_share_coordinators_are_for_brokers(guarded: Guarded) -> None:
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=["g:id:0"])
    (found,) = guarded.talk.ask(request).coordinators
    assert found.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# --- groups of the new protocol ---


def join(**fields: Any) -> ConsumerGroupHeartbeatRequest:
    facts: dict[str, Any] = {"group_id": "g", "member_id": "m", "rebalance_timeout_ms": 10_000}
    return ConsumerGroupHeartbeatRequest(**facts, topic_partitions=[], **fields)


def test_a_pattern_matches_what_the_member_may_describe(guarded: Guarded) -> None:
    talk = guarded.talk
    guarded.as_admin(lambda: find_coordinator(talk))
    set_acls(talk, [acl(READ_GROUP, "g"), acl(READ, OPEN)])
    answer = talk.ask(join(subscribed_topic_regex=".*"), 1)
    assert answer.error_code == 0
    (assigned,) = answer.assignment.topic_partitions
    assert assigned.topic_id == guarded.opened


def test_a_group_with_a_hidden_topic_is_not_described(guarded: Guarded) -> None:
    talk = guarded.talk
    guarded.as_admin(lambda: find_coordinator(talk))
    guarded.as_admin(lambda: talk.ask(join(subscribed_topic_names=[SECRET, OPEN]), 1))
    set_acls(talk, [acl((Operation.DESCRIBE, ResourceType.GROUP), "g"), acl(DESCRIBE, OPEN)])
    (group,) = talk.ask(ConsumerGroupDescribeRequest(group_ids=["g"])).groups
    assert (group.error_code, group.members) == (T, [])


# --- authorized operations ---


def test_operations_are_what_the_caller_may_do(guarded: Guarded) -> None:
    talk = guarded.talk
    guarded.as_admin(lambda: find_coordinator(talk))
    guarded.as_admin(lambda: talk.ask(commit_request("g", {(OPEN, 0): 2}), 9))
    describe_cluster = (Operation.DESCRIBE, ResourceType.CLUSTER)
    set_acls(talk, [acl(READ, OPEN), acl(READ_GROUP, "g")])
    wanted = MetadataRequest(
        topics=[MetadataRequestTopic(name=OPEN)],
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    answer = talk.ask(wanted, 8)
    assert answer.topics[0].topic_authorized_operations == 1 << 3 | 1 << 8
    assert answer.cluster_authorized_operations == 0
    cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert talk.ask(cluster).cluster_authorized_operations == 0
    groups = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    assert talk.ask(groups, 5).groups[0].authorized_operations == 1 << 3 | 1 << 8
    set_acls(talk, [acl(describe_cluster, CLUSTER_NAME)])
    assert talk.ask(cluster).cluster_authorized_operations == 1 << 8


# --- roles ---


def test_a_role_gives_its_members_rights(guarded: Guarded) -> None:
    talk = guarded.talk
    set_acls(talk, [acl(READ, SECRET, principal="Role:readers")])
    assert fetch(talk, SECRET).error_code == T
    set_role(talk, "readers", "User:bob", "User:alice")
    assert fetch(talk, SECRET).error_code == 0
    set_role(talk, "readers", "User:bob")
    assert fetch(talk, SECRET).error_code == T


# --- forwarding ---


def make(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic])


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Together:
    brokers = Together(tmp_path, settings=SECURED)
    monkeypatch.setattr(Node, "is_controller", property(lambda node: node.node_id == 3))
    monkeypatch.setattr(Node, "controller_id", property(lambda _: NodeId(3)))
    return brokers


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_the_controller_decides_for_the_client(three: Together, broker: int) -> None:
    talk = three[broker]
    talk.caller = caller()
    (refused,) = talk.ask(make("a")).topics
    assert refused.error_code == T
    assert "a" not in three[3].node.image.topics
    three[3].node.commit([acl(CREATE, "a")], 0)  # the controller's metadata decides
    three[3].settle()
    (made,) = talk.ask(make("a")).topics
    assert made.error_code == 0


def test_a_request_is_not_forwarded_without_its_client(
    three: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Ask] = []
    monkeypatch.setattr(three, "deliver_request", lambda _, ask: asked.append(ask))
    three[1].caller = caller()
    three[1].send(make("a"))
    (ask,) = asked
    assert ask.needs_envelope
    assert ask.for_versions is not None
    older = ask.for_versions(2, 5)
    assert older is not None
    assert older.needs_envelope


def test_a_broker_does_not_delete_a_topic_with_its_own_rights(guarded: Guarded) -> None:
    """As a broker of the previous release forwards requests: without their clients."""
    talk = guarded.talk
    talk.caller = PEER
    (refused,) = talk.ask(DeleteTopicsRequest(topic_names=[SECRET]), 5).responses
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert SECRET in talk.node.image.topics
    (made,) = talk.ask(make("of-the-broker")).topics
    assert made.error_code == 0, "brokers create topics that clients use for the first time"


# --- the audit log ---


def test_denials_are_written_once_a_second(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path, **{"security.audit_file": "unused"})
    talk = guarded.talk
    deny = acl(READ, SECRET, deny=True)
    set_acls(talk, [acl(READ, SECRET), deny])
    talk.audited.clear()
    for _ in range(3):
        fetch(talk, SECRET)
    (line,) = talk.audited
    facts = {"principal": "User:alice", "host": "10.0.0.1", "listener": "PLAINTEXT"}
    facts |= {"api": "Fetch", "operation": "READ", "resource_type": "TOPIC", "resource": SECRET}
    facts |= {"decision": "denied"}
    assert line.items() >= facts.items()
    assert line["acl"]["permission"] == "DENY"
    talk.pass_time(1_000)
    fetch(talk, SECRET)
    _, repeated, again = talk.audited
    assert repeated["repeated"] == 2
    assert again["resource"] == SECRET


def test_filters_write_no_denials(tmp_path: Path) -> None:
    talk = Guarded(tmp_path, **{"security.audit_file": "unused"}).talk
    talk.ask(MetadataRequest(topics=None), 12)
    assert not talk.audited
