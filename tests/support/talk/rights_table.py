"""What a caller needs for each API, and the answer where it lacks that: Kafka's table.

For each API the table names the needs, with the error where one is missing and how often it is in
the answer to the requests of `rights.py`: those name one resource that is denied and one that is
not.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.metadata.security_records import AclAdded, DelegationTokenChanged
from barnabas.model.errors import ErrorCode
from barnabas.model.permissions import Operation, Permission, ResourceType
from barnabas.protocol.message import Message
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.offset_requests import commit_request
from tests.support.talk.offset_requests import find_coordinator as find_group_coordinator
from tests.support.talk.requests import create_topic
from tests.support.talk.rights import (
    ADMIN,
    NAMES,
    OPEN,
    OPEN_GROUP,
    REQUESTS,
    SECRET,
    SECRET_GROUP,
    SECRET_ID,
    SECRET_TOKEN,
    SECURED,
    TOKEN_OWNER,
    Ids,
    acl,
    caller,
    set_acls,
)
from tests.support.talk.share_fetch_requests import fetch_request
from tests.support.talk.share_group_requests import (
    GROUP_REQUESTS,
    alter_request,
    heartbeat_request,
)
from tests.support.talk.share_state_requests import STATE_REQUESTS
from tests.support.talk.transaction_requests import find_coordinator, initialize

T, G, C, X, D = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
)
FAILURES = (X, G, C, T, D)
"""What a caller without any right gets: the first of these that the API knows."""
HIDDEN = None
SOON_MS = 5
"""How long a coordinator takes to continue after a question to another one."""
TOKEN = DelegationTokenChanged(
    token_id=SECRET_TOKEN,
    owner=TOKEN_OWNER,
    requester=TOKEN_OWNER,
    renewers=[],
    issued_ms=START_MS,
    expires_ms=START_MS + 3_600_000,
    ends_ms=START_MS + 7_200_000,
)


class Lack(NamedTuple):
    """What an answer says to a caller that lacks something."""

    code: ErrorCode | None
    """HIDDEN where the item is left out of the answer."""
    times: int = 1


NEEDS: dict[str, dict[str, Lack]] = {
    "Produce": {"WRITE topic": Lack(T), "WRITE txn": Lack(X, 2)},
    "Fetch": {"READ topic": Lack(T)},
    "ListOffsets": {"DESCRIBE topic": Lack(T)},
    "OffsetForLeaderEpoch": {"DESCRIBE topic or CLUSTER_ACTION cluster": Lack(T)},
    "Metadata": {"CREATE cluster or CREATE topic": Lack(T), "DESCRIBE topic": Lack(T)},
    "DescribeTopicPartitions": {"DESCRIBE topic": Lack(T)},
    "CreateTopics": {
        "CREATE cluster or CREATE topic": Lack(T),
        "DESCRIBE_CONFIGS topic": Lack(T),
    },
    "DeleteTopics": {"DELETE topic or DELETE cluster": Lack(T)},
    "DeleteRecords": {"DELETE topic": Lack(T)},
    "CreatePartitions": {"ALTER topic": Lack(T)},
    "DescribeConfigs": {"DESCRIBE_CONFIGS topic": Lack(T), "DESCRIBE_CONFIGS cluster": Lack(C)},
    "AlterConfigs": {"ALTER_CONFIGS topic": Lack(T), "ALTER_CONFIGS cluster": Lack(C)},
    "IncrementalAlterConfigs": {"ALTER_CONFIGS topic": Lack(T), "ALTER_CONFIGS cluster": Lack(C)},
    "OffsetCommit": {"READ group": Lack(G, 2), "READ topic": Lack(T)},
    "OffsetFetch": {"DESCRIBE group": Lack(G), "DESCRIBE topic": Lack(T)},
    "OffsetDelete": {"DELETE group": Lack(G), "READ topic": Lack(T)},
    "DeleteGroups": {"DELETE group": Lack(G)},
    "JoinGroup": {"READ group": Lack(G)},
    "SyncGroup": {"READ group": Lack(G)},
    "LeaveGroup": {"READ group": Lack(G)},
    "Heartbeat": {"READ group": Lack(G)},
    "ConsumerGroupHeartbeat": {"READ group": Lack(G), "DESCRIBE topic": Lack(T)},
    "ShareFetch": {"READ group": Lack(G), "READ topic": Lack(T)},
    "ShareAcknowledge": {"READ group": Lack(G), "READ topic": Lack(T)},
    "ShareGroupHeartbeat": {"READ group": Lack(G), "DESCRIBE topic": Lack(T)},
    "ShareGroupDescribe": {"DESCRIBE group": Lack(G), "DESCRIBE topic": Lack(T)},
    "DescribeShareGroupOffsets": {"DESCRIBE group": Lack(G), "DESCRIBE topic": Lack(T)},
    "AlterShareGroupOffsets": {"READ group": Lack(G), "READ topic": Lack(T)},
    "DeleteShareGroupOffsets": {"DELETE group": Lack(G), "READ topic": Lack(T)},
    "DescribeGroups": {"DESCRIBE group": Lack(G)},
    "ConsumerGroupDescribe": {"DESCRIBE group": Lack(G), "DESCRIBE topic": Lack(T)},
    "ListGroups": {"DESCRIBE cluster or DESCRIBE group": Lack(HIDDEN)},
    "ListTransactions": {"DESCRIBE txn": Lack(HIDDEN)},
    "FindCoordinator": {"DESCRIBE group": Lack(G)},
    "InitProducerId": {"WRITE txn": Lack(X)},
    "AddPartitionsToTxn": {"WRITE txn or CLUSTER_ACTION cluster": Lack(X, 2)},
    "AddOffsetsToTxn": {"WRITE txn": Lack(X), "READ group": Lack(G)},
    "TxnOffsetCommit": {"WRITE txn": Lack(X, 2), "READ group": Lack(G, 2), "READ topic": Lack(T)},
    "EndTxn": {"WRITE txn": Lack(X)},
    "DescribeTransactions": {"DESCRIBE txn": Lack(X), "DESCRIBE topic": Lack(HIDDEN)},
    "DescribeProducers": {"READ topic": Lack(T)},
    "WriteTxnMarkers": {"ALTER cluster or CLUSTER_ACTION cluster": Lack(C, 2)},
    "DescribeQuorum": {"DESCRIBE cluster": Lack(C)},
    "DescribeLogDirs": {"DESCRIBE cluster": Lack(C)},
    "ListPartitionReassignments": {"DESCRIBE cluster": Lack(C)},
    "ElectLeaders": {"ALTER cluster": Lack(C, 3)},
    "AlterPartitionReassignments": {"ALTER cluster": Lack(C, 3)},
    "AlterReplicaLogDirs": {"ALTER cluster": Lack(C, 2)},
    "UpdateFeatures": {"ALTER cluster": Lack(C)},
    "UnregisterBroker": {"ALTER cluster": Lack(C)},
    "AddRaftVoter": {"ALTER cluster": Lack(C)},
    "RemoveRaftVoter": {"ALTER cluster": Lack(C)},
    "ListConfigResources": {"DESCRIBE_CONFIGS cluster": Lack(C)},
    "DescribeClientQuotas": {"DESCRIBE_CONFIGS cluster": Lack(C)},
    "AlterClientQuotas": {"ALTER_CONFIGS cluster": Lack(C)},
    "DescribeUserScramCredentials": {"DESCRIBE cluster": Lack(C, 2)},
    "AlterUserScramCredentials": {"ALTER cluster": Lack(C, 2)},
    "CreateDelegationToken": {"CREATE_TOKENS user": Lack(D)},
    "DescribeDelegationToken": {"DESCRIBE token or DESCRIBE_TOKENS user": Lack(HIDDEN)},
    "DescribeAcls": {"DESCRIBE cluster": Lack(C)},
    "CreateAcls": {"ALTER cluster": Lack(C, 2)},
    "DeleteAcls": {"ALTER cluster": Lack(C, 2)},
    **{api: {"CLUSTER_ACTION cluster": Lack(C, 2)} for api in STATE_REQUESTS},
}

IN_VERSIONS: dict[str, dict[range, dict[str, Lack]]] = {
    "AddPartitionsToTxn": {
        range(4): {"WRITE txn": Lack(X, 2), "WRITE topic": Lack(T)},
        range(4, 6): {"CLUSTER_ACTION cluster": Lack(C)},
    },
    "CreateDelegationToken": {range(1, 3): {}},
    "CreateTopics": {range(2, 5): {"CREATE cluster or CREATE topic": Lack(T)}},
    "DescribeLogDirs": {range(1, 3): {"DESCRIBE cluster": Lack(HIDDEN)}},
    "OffsetFetch": {range(1, 2): {"DESCRIBE group": Lack(G, 2), "DESCRIBE topic": Lack(T)}},
    "ElectLeaders": {range(1): {"ALTER cluster": Lack(C, 2)}},
    "Metadata": {range(12, 14): {"DESCRIBE topic": Lack(T)}},
}
"""Where versions differ from the table."""

RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "txn": ResourceType.TRANSACTIONAL_ID,
    "token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}


def permissions(text: str) -> frozenset[Permission]:
    """Read a cell of the table."""
    found = set()
    for words in text.split(" or "):
        operation, resource = words.split()
        found.add((Operation[operation], RESOURCES[resource]))
    return frozenset(found)


def needs_of(api: str, version: int) -> dict[str, Lack]:
    """Return the line of the table for an API in a version."""
    for versions, cells in IN_VERSIONS.get(api, {}).items():
        if version in versions:
            return cells
    return NEEDS[api]


class Scene:
    """A broker with the resources that the requests name."""

    def __init__(self, folder: Path, api: str, version: int) -> None:
        self.api, self.version = api, version
        self.talk = talk = Dialogue(folder, SECURED)
        talk.caller = caller(ADMIN)
        secret, opened = create_topic(talk, SECRET), create_topic(talk, OPEN)
        find_group_coordinator(talk)
        if api in GROUP_REQUESTS:
            self._make_share_group()
        else:
            for group in (SECRET_GROUP, OPEN_GROUP):
                talk.ask(commit_request(group, {(SECRET, 0): 1}), 9)
        join = REQUESTS["ConsumerGroupHeartbeat"](1, Ids(secret, opened, (0, 0)))
        join.group_id = "secret-consumers"  # type: ignore[attr-defined]
        join.rebalance_timeout_ms = 10_000  # type: ignore[attr-defined]
        join.topic_partitions = []  # type: ignore[attr-defined]
        assert talk.ask(join).error_code == 0
        find_coordinator(talk, SECRET_ID)
        producer = initialize(talk, SECRET_ID)
        self.ids = Ids(secret, opened, producer)
        add = REQUESTS["AddPartitionsToTxn"](3, self.ids)
        talk.ask(add, 3)
        talk.node.authentication.signer.use("the secret of this cluster")
        talk.node.commit([TOKEN], talk.now_ms)
        talk.settle()
        talk.caller = caller()

    def answer(self, *acls: AclAdded) -> Any:
        """Return the answer with these ACLs alone; None while there is none."""
        if self.api == "ShareAcknowledge":
            self._begin_share_session()
        set_acls(self.talk, acls)
        exchange = self.talk.send(REQUESTS[self.api](self.version, self.ids), self.version)
        if exchange.waiting:
            self.talk.pass_time(SOON_MS)
        return None if exchange.waiting else exchange.answer

    def _begin_share_session(self) -> None:
        """Let the member begin a session, which its next request continues."""
        asking, self.talk.caller = self.talk.caller, caller(ADMIN)
        fetched = self.talk.send(fetch_request(SECRET_GROUP, self.ids.topics.values()))
        self.talk.pass_time(SOON_MS)
        assert fetched.answer.error_code == 0
        self.talk.caller = asking

    def _make_share_group(self) -> None:
        """Make a share group with state; only where it is described it has a member."""
        both = (SECRET, OPEN)
        altered = self.talk.send(alter_request(SECRET_GROUP, {(name, 0): 1 for name in both}))
        self.talk.pass_time(SOON_MS)
        assert altered.answer.error_code == 0
        if self.api == "ShareGroupDescribe":
            joined = self.talk.ask(heartbeat_request(SECRET_GROUP, both))
            assert len(joined.assignment.topic_partitions) == len(both)

    def minimal(self, *, prefixed: bool = False) -> list[AclAdded]:
        """Return ACLs for what the table names, and no more."""
        size = 3 if prefixed else None
        names = [SECRET, OPEN, SECRET_GROUP, OPEN_GROUP, SECRET_ID, "secret-consumers"]
        names += ["secret-made", "open-made", "secret-new", SECRET_TOKEN, TOKEN_OWNER]
        found = []
        for cell in needs_of(self.api, self.version):
            for permission in permissions(cell):
                is_cluster = permission[1] is ResourceType.CLUSTER
                if is_cluster:
                    found.append(acl(permission, NAMES[permission[1]]))
                    continue
                patterns = dict.fromkeys(name[:size] for name in names)
                found += [acl(permission, name, prefixed=prefixed) for name in patterns]
        return found


def codes_in(message: Any) -> Iterator[int]:
    """Return every error code in a message, whatever its form."""
    for name in message.__slots__:
        value = getattr(message, name)
        if name.endswith("error_code"):
            yield value
        for item in value if isinstance(value, list) else ():
            if isinstance(item, Message):
                yield from codes_in(item)


def failures_in(answer: Any) -> list[int]:
    """Return the codes that say that something is not authorized."""
    return [] if answer is None else [code for code in codes_in(answer) if code in FAILURES]


def denials(cell: str, api: str, principal: str) -> list[AclAdded]:
    """Return ACLs that deny what a cell of the table names."""
    found = []
    for permission in permissions(cell):
        name = NAMES[permission[1]]
        if api == "CreateTopics" and permission[1] is ResourceType.TOPIC:
            name = "secret-made"
        if api == "Metadata" and permission[0] is Operation.CREATE and name == SECRET:
            name = "secret-new"
        found.append(acl(permission, name, principal=principal, deny=True))
    return found


def repr_of(message: Any) -> str:
    """Return the texts of a message."""
    if isinstance(message, list):
        return " ".join(map(repr_of, message))
    if not isinstance(message, Message):
        return str(message)
    return " ".join(repr_of(getattr(message, name)) for name in message.__slots__)
