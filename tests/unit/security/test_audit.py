"""Which denials are written."""

import json
from typing import Any

import pytest

from barnabas.model.callers import CLIENT_LISTENER, Caller, Principal
from barnabas.model.permissions import Operation, ResourceType, right
from barnabas.security import audit
from barnabas.security.audit import Audit
from barnabas.security.authorizer import Verdict, Why

READ = right(Operation.READ, ResourceType.TOPIC)
NO = Verdict(allowed=False, why=Why.NO_MATCHING_ACL)
EVE = Caller(Principal("User", "eve"), CLIENT_LISTENER, "10.0.0.9")


class Log:
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.audit = Audit(1, lambda line: self.lines.append(json.loads(line)))

    def deny(self, now_ms: int, name: str = "orders") -> None:
        self.audit.denied(now_ms, EVE, "Fetch", READ, name, NO)


def test_a_line_says_who_was_denied_what() -> None:
    log = Log()
    log.deny(0)
    assert log.lines == [
        {
            "time": "1970-01-01T00:00:00.000+00:00",
            "broker": 1,
            "principal": "User:eve",
            "host": "10.0.0.9",
            "listener": "PLAINTEXT",
            "api": "Fetch",
            "operation": "READ",
            "resource_type": "TOPIC",
            "resource": "orders",
            "decision": "denied",
            "reason": "no ACL allows it",
        }
    ]


def test_denials_that_are_too_many_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "DENIALS_MAX", 3)
    log = Log()
    for number in range(5):
        log.deny(0, f"topic-{number}")
    assert len(log.lines) == 3
    log.deny(1_000)
    assert log.lines[3]["left_out"] == 2
    assert log.lines[4]["resource"] == "orders"


def test_a_clock_that_goes_back_does_not_silence_it() -> None:
    log = Log()
    log.deny(10_000)
    log.deny(5_000)
    assert len([line for line in log.lines if "resource" in line]) == 2


def test_a_name_cannot_forge_a_line() -> None:
    log = Log()
    log.deny(0, 'x"}\n{"principal":"User:alice' + "y" * 1_000)
    (line,) = log.lines
    assert line["principal"] == "User:eve"
    assert len(line["resource"]) == audit.NAME_CHARACTERS_MAX
