"""The table of rights, side by side with Apache Kafka and its StandardAuthorizer.

Both are asked the same with the same ACLs. The parts of the two answers that say that something is
not authorized must be equal, field by field: which items, which code, with or without names. No
difference is accepted. `make compat-rights` compares every version (the other tests the lowest and
the highest), and writes the whole matrix to build/rights-matrix.md.
"""

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas.handlers.registry import SERVED
from barnabas.handlers.rows.row import Row
from barnabas.metadata.security_records import AclAdded
from barnabas.model.callers import Principal
from barnabas.model.errors import ErrorCode
from barnabas.protocol.apis import APIS
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.testing.raw_client import frame_of, framed
from barnabas.testing.waiting import eventually
from tests.support.loads.secured_kafka import UserLink, secured_kafka
from tests.support.talk.offset_requests import commit_request
from tests.support.talk.rights import (
    ALICE,
    OPEN,
    OPEN_GROUP,
    REQUESTS,
    SECRET,
    SECRET_GROUP,
    SECRET_ID,
    Ids,
    caller,
    everything,
)
from tests.support.talk.rights_table import FAILURES, Scene, denials, needs_of
from tests.support.talk.share_fetch_requests import fetch_request
from tests.support.talk.share_group_requests import (
    GROUP_REQUESTS,
    alter_request,
    heartbeat_request,
)

pytestmark = [pytest.mark.compat, pytest.mark.timeout(900)]

MATRIX = Path(__file__).parents[2] / "build" / "rights-matrix.md"
ANY: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
NOT_COMPARED = {"throttle_time_ms", "error_message"}
"""Kafka's texts are its own."""
OWN_IDS = {"CreatableTopicResult"}
"""A new topic has another id on each side."""


class Cell(NamedTuple):
    """One comparison: what both answered."""

    api: str
    version: int
    label: str
    denials: list[str]
    """The parts of the answer that say that something is not authorized."""


class Kafka:
    """Apache Kafka, as its administrator sees it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.admin = UserLink(port, "admin")
        self.makes_shares = False
        """Whether there is a share group by the name of a group that has committed offsets."""
        asked = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        versions = self.admin.ask(asked, 3).api_keys
        self.served = {each.api_key: (each.min_version, each.max_version) for each in versions}

    def prepare(self, api: str) -> Ids:
        """Create what the requests name, again if it was deleted."""
        gone = DeleteTopicsRequest(topic_names=["secret-new"], timeout_ms=10_000)
        self.admin.ask(gone, 5)
        made = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in (SECRET, OPEN)
        ]
        self.admin.ask(CreateTopicsRequest(topics=made, timeout_ms=10_000), 7)
        topics = eventually(self._topics)
        for kind, key in ((0, SECRET_GROUP), (1, SECRET_ID)):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            eventually(lambda r=request: not self.admin.ask(r, 4).coordinators[0].error_code)  # type: ignore[misc]
        if api in GROUP_REQUESTS:
            eventually(lambda: self._has_share_group(api))
        else:
            self._commit()
        producer = eventually(self._producer)
        assert producer is not None
        ids = Ids(topics[SECRET], topics[OPEN], producer)
        join: Any = REQUESTS["ConsumerGroupHeartbeat"](1, ids)
        join.group_id, join.rebalance_timeout_ms, join.topic_partitions = (
            "secret-consumers",
            10_000,
            [],
        )
        eventually(lambda: not self.admin.ask(join, 1).error_code)
        self.admin.ask(REQUESTS["AddPartitionsToTxn"](3, ids), 3)
        return ids

    def _commit(self) -> None:
        """Commit offsets of two groups, after a share group of the same name is deleted."""
        if self.makes_shares:
            self.admin.ask(heartbeat_request(SECRET_GROUP, None, epoch=-1), 1)
            self.admin.ask(DeleteGroupsRequest(groups_names=[SECRET_GROUP]), 2)
            self.makes_shares = False
        for group in (SECRET_GROUP, OPEN_GROUP):
            commit = commit_request(group, {(SECRET, 0): 1})
            eventually(lambda c=commit: not _commit_code(self.admin.ask(c, 9)))  # type: ignore[misc]

    def _has_share_group(self, api: str) -> bool:
        """Make a share group with state; only where it is described it has a member."""
        self.makes_shares = True
        both = (SECRET, OPEN)
        altered = self.admin.ask(alter_request(SECRET_GROUP, {(name, 0): 1 for name in both}), 0)
        if altered.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            self.admin.ask(DeleteGroupsRequest(groups_names=[SECRET_GROUP]), 2)
        if altered.error_code not in {ErrorCode.NONE, ErrorCode.NON_EMPTY_GROUP}:
            return False
        if api != "ShareGroupDescribe":
            left = self.admin.ask(heartbeat_request(SECRET_GROUP, None, epoch=-1), 1).error_code
            return bool(altered.error_code == 0 and left != 0)
        joined = self.admin.ask(heartbeat_request(SECRET_GROUP, both), 1)
        topics = joined.assignment.topic_partitions if joined.assignment else ()
        return len(topics) == len(both)

    def begin_share_session(self, ids: Ids) -> None:
        """Let a member begin a session, which its next request continues."""
        fetched = self.admin.ask(fetch_request(SECRET_GROUP, ids.topics.values()), 1)
        assert fetched.error_code == 0

    def set_acls(self, acls: Sequence[AclAdded]) -> None:
        """Have these ACLs, and no others."""
        self.admin.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANY)]), 3)
        creations = [
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in acls
        ]
        answer = self.admin.ask(CreateAclsRequest(creations=creations), 3)
        assert not any(result.error_code for result in answer.results)
        wanted = len({tuple(_values(creation)) for creation in creations})
        eventually(lambda: self._acl_count() == wanted)

    def answer(self, user: str, request: Message, version: int) -> Any:
        """Ask as a user."""
        link = UserLink(self.port, user)
        try:
            return link.ask(request, version)
        finally:
            link.close()

    def _acl_count(self) -> int:
        answer = self.admin.ask(DescribeAclsRequest(**ANY), 3)
        return sum(len(each.acls) for each in answer.resources)

    def _topics(self) -> dict[str, bytes]:
        named = [MetadataRequestTopic(name=name) for name in (SECRET, OPEN)]
        found = self.admin.ask(MetadataRequest(topics=named), 12).topics
        led = all(t.partitions and t.partitions[0].leader_id >= 0 for t in found)
        return {topic.name: topic.topic_id for topic in found} if led else {}

    def _producer(self) -> tuple[int, int] | None:
        request = InitProducerIdRequest(transactional_id=SECRET_ID, transaction_timeout_ms=60_000)
        answer = self.admin.ask(request, 4)
        return None if answer.error_code else (answer.producer_id, answer.producer_epoch)


def _commit_code(answer: Any) -> int:
    code: int = answer.topics[0].partitions[0].error_code
    return code


def _values(message: Message) -> list[object]:
    return [getattr(message, name) for name in message.__slots__]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Kafka]:
    with secured_kafka(tmp_path_factory.mktemp("kafka"), jars) as port:
        running = Kafka(port)
        yield running
        running.admin.close()


def shown(value: object, named: dict[bytes, str]) -> object:
    """Return what is compared of a value."""
    if isinstance(value, list):
        return len(value)
    return named.get(value, value) if isinstance(value, bytes) else str(value)


def denied_parts(message: Any, ids: Ids) -> list[str]:
    """Return the parts of an answer that say that something is not authorized."""
    found = []
    values = {name: getattr(message, name) for name in message.__slots__}
    if any(name.endswith("error_code") and v in FAILURES for name, v in values.items()):
        kind = type(message).__name__
        named = {topic_id: f"the id of {name}" for name, topic_id in ids.topics.items()}
        facts = {
            name: shown(value, named)
            for name, value in values.items()
            if name not in NOT_COMPARED and not (name == "topic_id" and kind in OWN_IDS)
        }
        found.append(f"{kind} {facts}")
    for value in values.values():
        for item in value if isinstance(value, list) else ():
            if isinstance(item, Message):
                found += denied_parts(item, ids)
    return sorted(found)


def cases(scene: Scene) -> Iterator[tuple[str, str, list[AclAdded]]]:
    """Return users, each with the ACLs that there are."""
    yield "no ACLs", "nobody", []
    for cell in needs_of(scene.api, scene.version):
        denied = denials(cell, scene.api, str(ALICE))
        yield f"all but {cell}", "alice", [*everything(), *denied]
    yield "just enough", "alice", scene.minimal()
    yield "just enough, by prefixes", "alice", scene.minimal(prefixed=True)


def versions(kafka: Kafka, row: Row) -> range:
    """Return the versions that both serve to clients."""
    if row.key not in kafka.served:
        pytest.skip(f"this Kafka does not serve {APIS[row.key].name} to clients")
    low, high = kafka.served[row.key]
    return range(max(row.low, low), min(row.high, high) + 1)


def compare(kafka: Kafka, folder: Path, api: str, version: int) -> Iterator[Cell]:
    """Ask both, in every case; return what both answered."""
    scene = Scene(folder, api, version)
    for label, user, acls in cases(scene):
        ids = kafka.prepare(api)
        scene.talk.caller = caller(Principal("User", user))
        ours = scene.answer(*acls)
        if api == "ShareAcknowledge":
            kafka.begin_share_session(ids)
        kafka.set_acls(acls)
        theirs = kafka.answer(user, REQUESTS[api](version, ids), version)
        found = [] if ours is None else denied_parts(ours, scene.ids)
        assert found == denied_parts(theirs, ids), f"{label}, version {version}"
        assert not (found and label.startswith("just enough"))
        yield Cell(api, version, label, found)


GUARDED = pytest.mark.parametrize(
    "row", [row for row in SERVED.values() if row.needs], ids=lambda row: row.key.name
)


@GUARDED
def test_answers_agree(kafka: Kafka, tmp_path: Path, row: Row) -> None:
    api, both = APIS[row.key].name, versions(kafka, row)
    for version in dict.fromkeys((both[0], both[-1])):
        assert list(compare(kafka, tmp_path / str(version), api, version))


@pytest.fixture(scope="module")
def matrix() -> Iterator[list[Cell]]:
    """Collect what was compared; write it as a table at last."""
    cells: list[Cell] = []
    yield cells
    lines = ["| API | version | the caller has | denied |", "|---|---|---|---|"]
    for cell in cells:
        codes = "; ".join(cell.denials) or "nothing"
        lines.append(f"| {cell.api} | {cell.version} | {cell.label} | {codes} |")
    MATRIX.parent.mkdir(exist_ok=True)
    MATRIX.write_text(
        f"{len(cells)} answers, equal to Apache Kafka's.\n\n" + "\n".join(lines) + "\n"
    )


@pytest.mark.slow
@GUARDED
def test_answers_agree_in_every_version(
    kafka: Kafka, tmp_path: Path, row: Row, matrix: list[Cell]
) -> None:
    api = APIS[row.key].name
    for version in versions(kafka, row):
        matrix += compare(kafka, tmp_path / str(version), api, version)


@GUARDED
def test_no_api_answers_before_the_login(kafka: Kafka, row: Row) -> None:
    """Before a login Kafka closes the connection without an answer, whatever is asked.

    `tests/unit/server/test_unauthenticated.py` says the same of Barnabas.
    """
    api, ids = APIS[row.key].name, Ids(b"s" * 16, b"o" * 16, (1, 0))
    with ExitStack() as stack:
        clients = []
        for version in versions(kafka, row):
            content = framed(frame_of(REQUESTS[api](version, ids), version))
            client = stack.enter_context(socket.create_connection(("127.0.0.1", kafka.port), 30))
            client.sendall(content)
            clients.append(client)
        assert [end_of(client) for client in clients] == [b""] * len(clients)


def end_of(client: socket.socket) -> bytes:
    """Return what the broker sends before it closes the connection."""
    try:
        return client.recv(1024)
    except ConnectionResetError:
        return b""
