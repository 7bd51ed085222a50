"""Syncs one partition's log to disk.

Under `flush=ack` every append is synced before it is acknowledged, together with others where that
helps (`group_commit.py`). Under `flush=interval` a timer starts the syncs
(`node/chores/maintenance.py`). Only one sync of a log runs at a time. What is appended meanwhile
is synced by the next one.
"""

from collections.abc import Callable

from barnabas.effects import Effect, Flush, MakeDurable
from barnabas.metadata.topic_config import TopicConfig
from barnabas.node.partitions.group_commit import GroupCommit
from barnabas.storage.changes import Sync
from barnabas.storage.flush import FlushTask
from barnabas.storage.log import Log


class Flusher:
    """The syncs of one log."""

    __slots__ = (
        "_appends",
        "_commits",
        "_is_flushing",
        "_on_flushed",
        "_outbox",
        "config",
        "is_stopped",
        "log",
        "on_ack",
    )

    def __init__(
        self,
        log: Log,
        config: TopicConfig,
        outbox: list[Effect],
        commits: GroupCommit,
        on_flushed: Callable[[], None],
    ) -> None:
        self.log = log
        self.is_stopped = self._is_flushing = False
        self._outbox, self._commits, self._on_flushed = outbox, commits, on_flushed
        self._appends = 0
        """How many appends there were since the last sync began."""
        self._set_config(config)

    def _set_config(self, config: TopicConfig) -> None:
        self.config = config
        self.on_ack = config.flush_on_ack
        """Whether a record must be synced before it is acknowledged."""

    def configure(self, config: TopicConfig) -> None:
        """Apply another topic configuration, and sync what it no longer allows to be unsynced."""
        self._set_config(config)
        self._commits.left_unsynced(self)  # records that waited for a sync may wait for the timer
        self.flush_if_due()

    @property
    def is_synced(self) -> bool:
        """Whether the log is as durable as the topic's `flush` setting asks for, up to its end."""
        return not self.on_ack or self.log.flushed_offset >= self.log.end_offset

    def appended(self, size: int) -> None:
        """Have appended bytes synced, according to the topic's `flush` setting."""
        self._appends += 1
        if self.on_ack:
            self._commits.appended(self, size)
        else:
            self._commits.unsynced[self] = None

    def flush_if_due(self) -> None:
        """Start a sync if `flush=ack` asks for one."""
        if self.on_ack and self.log.flushed_offset < self.log.end_offset:
            self.flush()

    def flush(self, *, urgent: bool = True) -> None:
        """Start a sync of everything appended so far, unless one is running or nothing needs it.

        A sync that no client waits for is not urgent.
        """
        task = None if self._is_flushing or self.is_stopped else self.log.begin_flush()
        if task is None:
            return
        self._is_flushing = True
        appends, self._appends = self._appends, 0
        if urgent:
            self._outbox.append(Flush(task, lambda: self._flushed(task), appends))
        else:
            safe = Sync(task.files, task.folders)
            self._outbox.append(MakeDurable(safe, lambda: self._flushed(task)))

    def _flushed(self, task: FlushTask) -> None:
        if self.is_stopped:
            return
        log = self.log
        self._is_flushing = False
        log.finish_flush(task)
        if self.on_ack and log.flushed_offset < log.end_offset:
            self.flush()
        self._on_flushed()

    def stop(self) -> None:
        """Start no more syncs: the log's files are about to be deleted."""
        self.is_stopped = True
        self._on_flushed = _ignore  # a reference cycle would keep the log's files open


def _ignore() -> None:
    """Do nothing."""
