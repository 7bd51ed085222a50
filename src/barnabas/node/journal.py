"""The metadata log: a change is written, synced, replayed, and only then answered.

`propose` takes records and an action. Records of changes that arrive while a sync is under way
share the next one. A proposer looks at the image as it will be only in its action: between
proposing and replaying, others may propose the same, so decisions are made against the image
with everything proposed so far replayed into it (there is one writer, and nothing it proposes can
fail but by stopping the process).
"""

from collections.abc import Callable, Sequence

from barnabas.metadata.image import Image
from barnabas.metadata.records import MetadataRecord, decode, encode
from barnabas.model.errors import StorageError
from barnabas.model.ports import Disk
from barnabas.node.effects import Effect, Flush
from barnabas.protocol.records import Record, batches, build, parse_header, records
from barnabas.storage.log import FlushTask, Log, LogSettings
from barnabas.storage.recovery import Recovered, open_log

FOLDER = "__cluster_metadata"
SNAPSHOT_AFTER = 5_000
"""At the start a log with this many records more than its image needs is written anew."""

SETTINGS = LogSettings(segment_bytes=1 << 30)


class Journal:
    """Metadata on disk, and the image it amounts to."""

    def __init__(self, disk: Disk, data_folder: str, outbox: list[Effect]) -> None:
        self.image = Image()
        self._disk = disk
        self._folder = f"{data_folder}/{FOLDER}"
        self._outbox = outbox
        self._flushing = False
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self._log: Log

    def open(self) -> Recovered:
        """Replay what was stored. Metadata is always synced, so a damaged log stops the start."""
        if not self._disk.exists(self._folder) and self._disk.exists(f"{self._folder}.old"):
            self._disk.rename(f"{self._folder}.old", self._folder)  # a crash within `_rewrite`
        recovered = open_log(self._disk, self._folder, SETTINGS)
        self._log = recovered.log
        count = self._replay_all()
        snapshot = list(self.image.snapshot())
        if count > len(snapshot) + SNAPSHOT_AFTER:
            self._rewrite(snapshot)
        return recovered

    def propose(
        self, changes: Sequence[MetadataRecord], now_ms: int, action: Callable[[], None]
    ) -> None:
        """Commit records, then call the action."""
        self._append(self._log, changes, now_ms)  # first: where the disk refuses, nothing happened
        for change in changes:
            self.image.replay(change)
        self._waiting.append((self._log.end_offset, action))
        self._flush()

    def close(self) -> None:
        """Let go of the log."""
        self._log.close()

    def commit_now(self, changes: Sequence[MetadataRecord], now_ms: int) -> None:
        """Commit records while nobody else waits: at the start."""
        self._append(self._log, changes, now_ms)
        for change in changes:
            self.image.replay(change)
        task = self._log.begin_flush()
        if task is not None:
            _carry_out(self._disk, task)
            self._log.finish_flush(task)

    @staticmethod
    def _append(log: Log, changes: Sequence[MetadataRecord], now_ms: int) -> None:
        if not changes:
            return
        numbered = enumerate(map(encode, changes))
        batch = build([Record(number, now_ms, *content) for number, content in numbered])
        log.append(memoryview(batch), parse_header(batch), 0)

    def _flush(self) -> None:
        if self._flushing:
            return
        task = self._log.begin_flush()
        if task is None:
            self._answer()
            return
        self._flushing = True
        self._outbox.append(Flush(task, lambda: self._flushed(task)))

    def _flushed(self, task: FlushTask) -> None:
        self._flushing = False
        self._log.finish_flush(task)
        self._answer()
        if self._waiting:
            self._flush()

    def _answer(self) -> None:
        ready = [action for end, action in self._waiting if end <= self._log.flushed_offset]
        self._waiting = [wait for wait in self._waiting if wait[0] > self._log.flushed_offset]
        for action in ready:
            action()

    def _replay_all(self) -> int:
        offset, count = self._log.start_offset, 0
        while offset < self._log.end_offset:
            found = self._log.read(offset, 1 << 20, self._log.end_offset, at_least_one=True)
            if found is None:
                raise StorageError(f"{self._folder} has no batch at offset {offset}")
            for header, batch in batches(found.file.read(found.position, found.length)):
                for record in records(batch, header):
                    self.image.replay(decode(record.key, record.value))
                    count += 1
                offset = header.last_offset + 1
        return count

    def _rewrite(self, snapshot: list[MetadataRecord]) -> None:
        """Write the image as a short log beside the long one, then swap the folders."""
        beside = f"{self._folder}.new"
        self._disk.remove_tree(beside)
        log = open_log(self._disk, beside, SETTINGS).log
        for start in range(0, len(snapshot), 500):
            self._append(log, snapshot[start : start + 500], 0)
        task = log.begin_flush()
        assert task is not None
        _carry_out(self._disk, task)
        log.close()
        self._disk.rename(self._folder, f"{self._folder}.old")
        self._disk.rename(beside, self._folder)
        self._disk.remove_tree(f"{self._folder}.old")
        self._log = open_log(self._disk, self._folder, SETTINGS, clean=True).log


def _carry_out(disk: Disk, task: FlushTask) -> None:
    for file in task.files:
        file.sync()
    if task.folder is not None:
        disk.sync_folder(task.folder)
