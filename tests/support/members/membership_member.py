"""A process that runs group members, each on its own thread.

    python -m tests.support.members.membership_member confluent

It reads commands from stdin, with tabs between words, as `tests/compat/java/Members.java` does:

    join NAME LOG name=value...    start a member, which writes its log to a file
    leave NAME                     close its client and end it

All members leave at the end of the input. Members crash by a SIGKILL of the process.
"""

import importlib
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.support.members.membership_log import MemberLog

BATCH = 50
"""Records between two commits."""
POLL_S = 0.05
STILL_MEMBER = {"REBALANCE_IN_PROGRESS", "RebalanceInProgressError"}
"""Commit errors that do not mean that the member was fenced."""


@dataclass(frozen=True, kw_only=True)
class MemberSettings:
    """The settings of a member."""

    name: str
    bootstrap: str
    topic: str
    group: str
    protocol: str = "classic"
    assignor: str = "range"
    instance: str = ""
    """An instance id makes it a static member."""
    session_ms: int = 6000
    heartbeat_ms: int = 500

    @classmethod
    def of(cls, name: str, words: Iterable[str]) -> "MemberSettings":
        """Parse `name=value` words."""
        told: dict[str, Any] = dict(word.split("=", 1) for word in words)
        for key in ("session_ms", "heartbeat_ms"):
            told[key] = int(told[key])
        return cls(name=name, **told)


def python_settings(settings: MemberSettings, assignors: Mapping[str, object]) -> dict[str, Any]:
    """Return the settings of a consumer that kafka-python and aiokafka name alike."""
    return {
        "bootstrap_servers": settings.bootstrap,
        "group_id": settings.group,
        "client_id": settings.name,
        "group_instance_id": settings.instance or None,
        "partition_assignment_strategy": [assignors[settings.assignor]],
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "session_timeout_ms": settings.session_ms,
        "heartbeat_interval_ms": settings.heartbeat_ms,
        "fetch_max_wait_ms": 50,
    }


class Member(Protocol):
    """Implements a member with one client library."""

    def run(self, leaving: threading.Event) -> None:
        """Run until asked to leave, then close the client."""


class Ledger:
    """The common part of all members: writes the log, and tracks the position in each partition."""

    def __init__(self, log: MemberLog) -> None:
        self.log = log
        self._positions: dict[int, int] = {}
        self._owned: set[int] = set()

    def owns(self, partition: int) -> bool:
        """Return whether a record of a partition may be processed."""
        return partition in self._owned

    @property
    def owned(self) -> frozenset[int]:
        """All owned partitions."""
        return frozenset(self._owned)

    def assigned(self, partitions: Iterable[int], generation: int | None = None) -> None:
        """Take partitions over; their position is known with the first record."""
        partitions = set(partitions)
        self.log.assigned(partitions, generation)
        self._owned |= partitions
        for partition in partitions:
            self._positions.pop(partition, None)

    def processed(self, partition: int, offset: int, value: bytes) -> None:
        """Log a record; its value is its number."""
        self.log.processed(partition, offset, int(value))
        self._positions[partition] = offset + 1

    def positions(self, partitions: Iterable[int] | None = None) -> dict[int, int]:
        """Return the offsets to commit: of some partitions, or of all."""
        wanted = self._owned if partitions is None else set(partitions)
        return {p: offset for p, offset in self._positions.items() if p in wanted}

    def given_up(self, partitions: Iterable[int], *, is_member: bool) -> None:
        """Log the loss of partitions; after a refused commit the loss was before it."""
        partitions = set(partitions)
        (self.log.revoked if is_member else self.log.lost)(partitions)
        self._owned -= partitions

    def committed(self, sent: int, offsets: Mapping[int, int]) -> bool:
        """Log a commit that the broker confirmed, which shows that this is a member."""
        self.log.committed(sent, offsets)
        return True

    def refused(self, sent: int, reason: str) -> bool:
        """Log a commit that was refused; return whether this is still a member."""
        self.log.refused(sent, reason)
        return reason in STILL_MEMBER


class Host:
    """The members of this process."""

    def __init__(self, client: str) -> None:
        self._make = importlib.import_module(f"tests.support.members.membership_{client}").make
        self._members: dict[str, tuple[threading.Thread, threading.Event]] = {}

    def run_commands(self, line: str) -> None:
        """Run one command."""
        verb, name, *words = line.rstrip("\n").split("\t")
        if verb == "join":
            settings = MemberSettings.of(name, words[1:])
            leaving = threading.Event()
            arguments = (settings, Path(words[0]), leaving)
            thread = threading.Thread(target=self._live, args=arguments, name=name)
            self._members[name] = thread, leaving
            thread.start()
        else:
            self.leave(name)

    def leave(self, *names: str) -> None:
        """Let members leave, all at once."""
        going = [self._members.pop(name) for name in names]
        for _, leaving in going:
            leaving.set()
        for thread, _ in going:
            thread.join()

    def close(self) -> None:
        """Let all remaining members leave."""
        self.leave(*list(self._members))

    def _live(self, settings: MemberSettings, path: Path, leaving: threading.Event) -> None:
        log = MemberLog(path)
        log.joined(settings.instance or path.stem)
        try:
            member: Member = self._make(settings, Ledger(log))
            member.run(leaving)
        except Exception as error:  # noqa: BLE001 - whatever a client raises belongs in the log
            log.failed(f"{type(error).__name__}: {error}")
        log.left()


def main(client: str) -> None:
    """Run commands until the input ends."""
    host = Host(client)
    for line in sys.stdin:
        host.run_commands(line)
    host.close()


if __name__ == "__main__":
    main(sys.argv[1])
