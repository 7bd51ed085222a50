"""Needs that several rights meet: each of them alone is enough, and none is not."""

from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.model.permissions import CLUSTER_NAME, ResourceType
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.talk.rights import NAMES, OPEN, REQUESTS, SECRET, SECRET_GROUP, SECRET_ID, acl
from tests.support.talk.rights_table import Scene, failures_in, permissions, repr_of

GROUP_CONFIGS = 32


class Alternatives(NamedTuple):
    """An API, a version, and rights each of which is enough."""

    api: str
    version: int
    rights: str
    request: Message | None = None
    """None for that of the matrix."""


CASES = [
    Alternatives(
        "OffsetForLeaderEpoch", 4, "DESCRIBE topic or READ topic or CLUSTER_ACTION cluster"
    ),
    Alternatives("WriteTxnMarkers", 1, "ALTER cluster or CLUSTER_ACTION cluster"),
    Alternatives("CreateTopics", 2, "CREATE topic or CREATE cluster"),
    Alternatives("DeleteTopics", 5, "DELETE topic or DELETE cluster or ALL cluster"),
    Alternatives("AddPartitionsToTxn", 5, "CLUSTER_ACTION cluster"),
    Alternatives(
        "InitProducerId",
        4,
        "IDEMPOTENT_WRITE cluster or WRITE topic or ALL topic",
        InitProducerIdRequest(transactional_id=None),
    ),
    Alternatives(
        "FindCoordinator",
        4,
        "DESCRIBE txn or WRITE txn",
        FindCoordinatorRequest(key_type=1, coordinator_keys=[SECRET_ID]),
    ),
    Alternatives(
        "FindCoordinator",
        6,
        "CLUSTER_ACTION cluster",
        FindCoordinatorRequest(key_type=2, coordinator_keys=["g:t:0"]),
    ),
    Alternatives(
        "DescribeConfigs",
        4,
        "DESCRIBE_CONFIGS group or ALTER_CONFIGS group",
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=GROUP_CONFIGS, resource_name=SECRET_GROUP)
            ]
        ),
    ),
    Alternatives(
        "AlterConfigs",
        2,
        "ALTER_CONFIGS group",
        AlterConfigsRequest(
            resources=[
                AlterConfigsResource(resource_type=GROUP_CONFIGS, resource_name=SECRET_GROUP)
            ]
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.api} {case.rights}")
def test_each_alone_is_enough(
    tmp_path: Path, case: Alternatives, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, case.api, case.version)
    request = case.request
    if request is not None:
        monkeypatch.setitem(REQUESTS, case.api, lambda *_: request)
    assert failures_in(scene.answer()), "nothing is needed"
    for permission in sorted(permissions(case.rights)):
        names = [NAMES[permission[1]]]
        if permission[1] is ResourceType.TOPIC:
            names = [SECRET, OPEN, f"{SECRET}-made", f"{OPEN}-made"]
        allowed = [acl(permission, name) for name in names]
        assert failures_in(scene.answer(*allowed)) == [], permission


@pytest.mark.parametrize("right", ["DESCRIBE cluster", "DESCRIBE group", "READ group"])
def test_groups_are_listed_by_two_rights(tmp_path: Path, right: str) -> None:
    scene = Scene(tmp_path, "ListGroups", 5)
    ((operation, resource),) = permissions(right)
    name = CLUSTER_NAME if resource is ResourceType.CLUSTER else SECRET_GROUP
    listed = repr_of(scene.answer(acl((operation, resource), name))).split()
    assert SECRET_GROUP in listed
    assert ("open-group" in listed) == (resource is ResourceType.CLUSTER)


def test_the_codes_of_keys_and_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, "FindCoordinator", 4)
    by_id = FindCoordinatorRequest(key_type=1, coordinator_keys=[SECRET_ID])
    monkeypatch.setitem(REQUESTS, "FindCoordinator", lambda *_: by_id)
    assert failures_in(scene.answer()) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
