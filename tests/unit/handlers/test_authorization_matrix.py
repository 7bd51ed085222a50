"""Every API, in every version, asked by callers with different rights.

`tests/support/talk/rights_table.py` has the table of what each API needs.
"""

from pathlib import Path
from typing import Any

import pytest

from barnabas.handlers.registry import SERVED
from barnabas.handlers.rows.row import Row
from barnabas.model.callers import ANONYMOUS, Principal
from barnabas.protocol.apis import APIS
from tests.support.talk.rights import ALICE, NAMES, REQUESTS, caller, everything
from tests.support.talk.rights_table import (
    FAILURES,
    HIDDEN,
    NEEDS,
    Lack,
    Scene,
    denials,
    failures_in,
    needs_of,
    permissions,
    repr_of,
)

WHOLE_ROW = {
    "FindCoordinator": "DESCRIBE group or DESCRIBE txn or CLUSTER_ACTION cluster",
    "InitProducerId": "WRITE txn or IDEMPOTENT_WRITE cluster or WRITE topic",
    "AddPartitionsToTxn": "WRITE txn or CLUSTER_ACTION cluster, "
    "WRITE topic or CLUSTER_ACTION cluster",
    "Fetch": "READ topic or CLUSTER_ACTION cluster",
    "DescribeConfigs": "DESCRIBE_CONFIGS topic or DESCRIBE_CONFIGS group or "
    "DESCRIBE_CONFIGS cluster",
    "AlterConfigs": "ALTER_CONFIGS topic or ALTER_CONFIGS group or ALTER_CONFIGS cluster",
    "IncrementalAlterConfigs": "ALTER_CONFIGS topic or ALTER_CONFIGS group or "
    "ALTER_CONFIGS cluster",
}
"""Rows whose requests need one permission or another, depending on what they contain."""

NOBODY = Principal("User", "nobody")
NOTHING_NEEDED = {
    "ApiVersions",
    "DescribeCluster",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "ExpireDelegationToken",  # its owner and its renewers alone
    "RenewDelegationToken",
    "SaslHandshake",
    "SaslAuthenticate",
}
ACROSS = [
    pytest.param(row, version, id=f"{APIS[row.key].name}-{version}")
    for row in SERVED.values()
    if row.needs
    for version in range(row.low, row.high + 1)
]


@pytest.fixture
def scene(tmp_path: Path, row: Row, version: int) -> Scene:
    return Scene(tmp_path, APIS[row.key].name, version)


def check_lack(answer: Any, cell: str, lack: Lack) -> None:
    if lack.code is HIDDEN:
        hidden = {NAMES[resource] for _, resource in permissions(cell)}
        assert failures_in(answer) == []
        assert not hidden & set(repr_of(answer).split())
    else:
        assert failures_in(answer) == [lack.code] * lack.times


@pytest.mark.parametrize(("row", "version"), ACROSS)
def test_without_rights(scene: Scene, row: Row, version: int) -> None:
    """The caller is anonymous, and there are no ACLs."""
    needs_name = "DelegationToken" in scene.api  # others manage no tokens, whatever their rights
    scene.talk.caller = caller(NOBODY if needs_name else ANONYMOUS)
    lacks = needs_of(scene.api, version).values()
    answer = scene.answer()
    expected = [code for code in FAILURES if code in {lack.code for lack in lacks}]
    if expected and scene.api not in {"DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs"}:
        assert set(failures_in(answer)) == {expected[0]}
    elif expected:
        assert set(failures_in(answer)) == set(expected)
    else:
        assert "secret" not in repr_of(answer)
    assert row.needs


@pytest.mark.parametrize(("row", "version"), ACROSS)
def test_a_deny_is_stronger_than_an_allow(scene: Scene, row: Row, version: int) -> None:
    """The caller may do everything, but for what one of the needs names: it, or everybody."""
    del row
    for cell, lack in needs_of(scene.api, version).items():
        for principal in (str(ALICE), "User:*"):
            denied = denials(cell, scene.api, principal)
            check_lack(scene.answer(*everything(), *denied), cell, lack)


@pytest.mark.parametrize("prefixed", [False, True])
@pytest.mark.parametrize(("row", "version"), ACROSS)
def test_what_the_table_names_is_enough(
    scene: Scene, row: Row, version: int, *, prefixed: bool
) -> None:
    del row, version
    answer = scene.answer(*scene.minimal(prefixed=prefixed))
    assert failures_in(answer) == []
    if scene.api in {"DescribeDelegationToken", "ListGroups", "ListTransactions"}:
        assert "secret" in repr_of(answer)


@pytest.mark.parametrize(
    "row", [row for row in SERVED.values() if row.needs], ids=lambda row: row.key.name
)
def test_every_need_of_a_row_is_in_the_table(row: Row) -> None:
    """A row that names something else, or an API without a line here, fails."""
    api = APIS[row.key].name
    named = WHOLE_ROW.get(api)
    cells = named.split(", ") if named else NEEDS[api]
    assert {need.permissions for need in row.needs} == {permissions(cell) for cell in cells}


def test_every_api_is_in_the_table_or_needs_nothing() -> None:
    names = {APIS[key].name for key in SERVED}
    assert names == set(NEEDS) | NOTHING_NEEDED
    assert set(REQUESTS) == set(NEEDS)
