"""The metadata log: a change is written, synced, and only then answered.

`propose` takes records and an action. Records of changes that arrive while a sync is under way
share the next one. A proposer looks at the image as it will be only in its action: between
proposing and syncing, others may propose the same, so decisions are made against the image
with everything proposed so far replayed into it (there is one writer, and what it has written
can only be lost by stopping the process).

Metadata that was committed is never cut away at a start. Each batch carries how much had been
synced when it was written, and a clean stop leaves a note of the end; whatever is damaged below
either stops the start, and only a torn tail that nobody was promised is dropped.
"""

from collections.abc import Callable, Iterator, Sequence

from barnabas.effects import Effect, Flush
from barnabas.metadata.image import Image
from barnabas.metadata.records import MetadataRecord, decode, encode
from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.model.ports import Disk
from barnabas.protocol.records import (
    HEADER_BYTES,
    BatchHeader,
    Record,
    batches,
    build,
    parse_header,
    records,
    verify,
)
from barnabas.storage.checkpoints import read_number, write_number
from barnabas.storage.flush import FlushTask
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.names import LOG_SUFFIX, numbered, segment_name
from barnabas.storage.recovery import Recovered, open_log
from barnabas.storage.walk import plausible

FOLDER = "__cluster_metadata"
SNAPSHOT_AFTER = 5_000
"""At the start a log with this many records more than its image needs is written anew."""

SETTINGS = LogSettings(segment_bytes=1 << 30)
SYNCED_HEADER = "synced"
END_FILE = "committed-end"


class Journal:
    """Metadata on disk, and the image it amounts to."""

    def __init__(self, disk: Disk, data_folder: str, outbox: list[Effect]) -> None:
        self.image = Image()
        self.folder = f"{data_folder}/{FOLDER}"
        self._disk = disk
        self._data_folder = data_folder
        self._outbox = outbox
        self._flushing = False
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self._log: Log

    def open(self) -> Recovered:
        """Replay what was stored; raise `StorageError` where what was committed is damaged."""
        self._finish_rewrite()
        refuse_damage(self._disk, self.folder)
        recovered = open_log(self._disk, self.folder, SETTINGS, root=self._data_folder)
        self._log = recovered.log
        count = self._replay_all()
        snapshot = list(self.image.snapshot())
        if count > len(snapshot) + SNAPSHOT_AFTER and self._has_room():
            self._rewrite(snapshot)
        return recovered

    def _has_room(self) -> bool:
        """Whether a log beside this one fits on the disk; a full one must not stop the start."""
        return self._disk.space(self._data_folder)[1] > 2 * self._log.size

    def propose(
        self, changes: Sequence[MetadataRecord], now_ms: int, action: Callable[[], None]
    ) -> None:
        """Commit records, then call the action; raise `OSError` where the disk takes none."""
        _append(self._log, changes, now_ms)  # first: where the disk refuses, nothing happened
        for change in changes:
            self.image.replay(change)
        self._waiting.append((self._log.end_offset, action))
        self._flush()

    def commit_now(self, changes: Sequence[MetadataRecord], now_ms: int) -> None:
        """Commit records while nobody else waits: at the start."""
        _append(self._log, changes, now_ms)
        for change in changes:
            self.image.replay(change)
        self._log.flush()

    def close(self) -> None:
        """Let go of the log, and note its end for the next start to find."""
        self._log.flush()
        _close(self._log)

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
                raise StorageError(f"{self.folder} has no batch at offset {offset}")
            for header, batch in batches(found.file.read(found.position, found.length)):
                for record in records(batch, header):
                    self.image.replay(decode(record.key, record.value))
                    count += 1
                offset = header.last_offset + 1
        return count

    def _rewrite(self, snapshot: list[MetadataRecord]) -> None:
        """Write the image as a short log beside the long one, then swap the folders.

        Each step is synced before the next: a crash leaves the long log or the short one.
        """
        beside = f"{self.folder}.new"
        log = open_log(self._disk, beside, SETTINGS, root=self._data_folder).log
        for start in range(0, len(snapshot), 500):
            _append(log, snapshot[start : start + 500], 0)
        log.flush()
        _close(log)
        self._disk.rename(self.folder, f"{self.folder}.old")
        self._disk.rename(beside, self.folder)
        self._disk.sync_folder(self._data_folder)
        self._disk.remove_tree(f"{self.folder}.old")
        self._log = open_log(self._disk, self.folder, SETTINGS, root=self._data_folder).log

    def _finish_rewrite(self) -> None:
        """Go on from wherever a crash left `_rewrite`."""
        old, new = f"{self.folder}.old", f"{self.folder}.new"
        if not self._disk.exists(self.folder) and self._disk.exists(old):
            self._disk.rename(old, self.folder)
            self._disk.sync_folder(self._data_folder)
        self._disk.remove_tree(old)
        self._disk.remove_tree(new)


def _append(log: Log, changes: Sequence[MetadataRecord], now_ms: int) -> None:
    if not changes:
        return
    synced = ((SYNCED_HEADER, str(log.flushed_offset).encode()),)
    batch = build(
        [
            Record(number, now_ms, key, value, synced)
            for number, (key, value) in enumerate(map(encode, changes))
        ]
    )
    log.append(memoryview(batch), parse_header(batch), 0)


def _close(log: Log) -> None:
    log.close()
    write_number(log.disk, f"{log.folder}/{END_FILE}", log.flushed_offset)


def refuse_damage(disk: Disk, folder: str) -> None:
    """Raise `StorageError` where metadata that was committed can no longer be read."""
    end, rest, where = 0, b"", folder
    for base in numbered(disk, folder, LOG_SUFFIX):
        where = f"{folder}/{segment_name(base)}{LOG_SUFFIX}"
        end, rest = _readable_end(disk.read_bytes(where), max(base, end))
        if rest:
            break
    committed = _noted_end(disk, folder)
    for header, batch in _whole_batches(rest):
        committed = max(committed, _synced_when_written(header, batch))
    if committed > end:
        raise StorageError(
            f"{where} is damaged: metadata up to offset {committed} was committed, and only "
            f"that up to {end} can be read; restore {folder} from a backup"
        )


def _noted_end(disk: Disk, folder: str) -> int:
    try:
        return read_number(disk, f"{folder}/{END_FILE}") or 0
    except StorageError:
        return 0  # the note is damaged, which says nothing about the log


def _readable_end(content: bytes, end: int) -> tuple[int, bytes]:
    """Return the offset up to which a segment can be read, and the bytes that cannot."""
    view, position = memoryview(content), 0
    try:
        while position < len(view):
            header = plausible(view, position, len(view) - position)
            verify(view[position : position + header.size], header)
            if header.base_offset != end:
                break
            end, position = header.last_offset + 1, position + header.size
    except CorruptBatchError:
        pass
    return end, content[position:]


def _whole_batches(content: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Find good batches among bytes of which the first are not."""
    view = memoryview(content)
    for position in range(len(view) - HEADER_BYTES):
        try:
            header = plausible(view, position, len(view) - position)
            batch = view[position : position + header.size]
            verify(batch, header)
        except CorruptBatchError:
            continue
        yield header, batch


def _synced_when_written(header: BatchHeader, batch: memoryview) -> int:
    for record in records(batch, header):
        return int(dict(record.headers).get(SYNCED_HEADER) or 0)
    return 0
