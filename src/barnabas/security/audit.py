"""The audit log: denied requests and changes of security metadata, as lines of JSON.

A repeated denial is written once a second, so that a client that repeats its requests does not fill
the disk. The next line about it says how often it was repeated. A limited number of different
denials is written in a second; the others are counted.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from barnabas.metadata.security_records import AclAdded
from barnabas.model.callers import Caller
from barnabas.model.permissions import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    Right,
)
from barnabas.security.authorizer import Verdict

REPEAT_MS = 1_000
DENIALS_MAX = 10_000
"""How many different denials of one second are written."""
NAME_CHARACTERS_MAX = 300
"""Longer names are truncated: they cannot be names of topics."""

Emit = Callable[[str], None]
Denial = tuple[str, str, str, int, str]


class Audit:
    """Writes the lines of one broker."""

    def __init__(self, node_id: int, emit: Emit) -> None:
        self._node_id = node_id
        self._emit = emit
        self._since_ms = 0
        self._repeats: dict[Denial, int] = {}
        """The denials of this second, and how often each was repeated."""
        self._left_out = 0

    def denied(
        self, now_ms: int, caller: Caller, api: str, wanted: Right, name: str, verdict: Verdict
    ) -> None:
        """Write that a caller was denied something."""
        if not 0 <= now_ms - self._since_ms < REPEAT_MS:
            self._begin_second(now_ms)
        shown = name[:NAME_CHARACTERS_MAX]
        denial = (str(caller.principal), caller.host, api, wanted.code, shown)
        if denial in self._repeats:
            self._repeats[denial] += 1
            return
        if len(self._repeats) >= DENIALS_MAX:
            self._left_out += 1
            return
        self._repeats[denial] = 0
        facts: dict[str, object] = {
            "operation": wanted.operation.name,
            "resource_type": wanted.resource.name,
            "resource": shown,
            "decision": "denied",
            "reason": verdict.why.value,
        }
        if verdict.acl is not None:
            facts["acl"] = acl_facts(verdict.acl)
        self._write(now_ms, caller, api, facts)

    def changed(
        self, now_ms: int, caller: Caller, api: str, what: str, facts: Mapping[str, object]
    ) -> None:
        """Write that a caller changed security metadata."""
        self._write(now_ms, caller, api, {"decision": "allowed", "change": what, **facts})

    def _begin_second(self, now_ms: int) -> None:
        repeated = sum(self._repeats.values())
        if repeated or self._left_out:
            facts = {"repeated": repeated, "left_out": self._left_out}
            self._emit(_line({"time": _moment(now_ms), "broker": self._node_id, **facts}))
        self._repeats.clear()
        self._left_out = 0
        self._since_ms = now_ms

    def _write(self, now_ms: int, caller: Caller, api: str, facts: Mapping[str, object]) -> None:
        who = {
            "time": _moment(now_ms),
            "broker": self._node_id,
            "principal": str(caller.principal),
            "host": caller.host,
            "listener": caller.listener.name,
            "api": api,
        }
        self._emit(_line({**who, **facts}))


def dropped_line(now_ms: int, node_id: int, count: int) -> str:
    """Return the line that says how many lines were dropped."""
    return _line({"time": _moment(now_ms), "broker": node_id, "dropped": count})


def acl_facts(acl: AclAdded) -> dict[str, str]:
    """Return an ACL with the names of its codes."""
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": Operation(acl.operation).name,
        "permission": PermissionType(acl.permission_type).name,
        "resource_type": ResourceType(acl.resource_type).name,
        "resource": acl.resource_name,
        "pattern": PatternType(acl.pattern_type).name,
    }


def _line(facts: Mapping[str, object]) -> str:
    return json.dumps(facts, ensure_ascii=True, separators=(",", ":"))


def _moment(now_ms: int) -> str:
    return datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds")
