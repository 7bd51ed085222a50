"""Changes to a log's files that need several syncs, made while the broker serves clients.

A sync takes milliseconds and must not run on the event loop, but a change survives a crash only if
renames and syncs happen in the right order. So a change is a generator: it writes and renames on
the loop, and yields a `Sync` wherever something must be durable before it continues.

    file = written_beside(disk, path, content)
    yield Sync(files=(file,))              # the content is durable
    disk.rename(beside(path), path)
    yield Sync(folders=(folder,))          # the name is durable

Only the loop creates, renames and removes files; the threads only sync. So no thread can write into
the folder of a new topic that has the name of a deleted one, and a log's state in memory and the
names of its files change in the same event.

A log has one change at a time (`Changes`). A truncation cannot wait: it first finishes the change
that is in progress, with blocking syncs (`Log.finish_change`).
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from barnabas.model.ports import Disk, File

if TYPE_CHECKING:
    from barnabas.storage.log import Log

T = TypeVar("T")


class ChangeAbandonedError(OSError):
    """A change was abandoned: the topic was deleted, or the log truncated before it."""


class Sync(NamedTuple):
    """Files and folders that must be durable before a change continues: files first, then folders.

    An empty one asks for other events to run in between.
    """

    files: tuple[File, ...] = ()
    folders: tuple[str, ...] = ()

    def carry_out(self, disk: Disk) -> None:
        """Sync everything. No sync is tried twice: `SyncFailedError` ends the process."""
        for file in self.files:
            file.sync()
        for folder in self.folders:
            # The topic was deleted meanwhile, and its folder with it.
            with suppress(FileNotFoundError):
                disk.sync_folder(folder)


ChangeSteps = Generator[Sync, None, T]
"""A change as a generator: the `Sync` that it yields must be done before it continues."""
SyncLater = Callable[[Sync, Callable[[], None]], None]
"""Has something synced off the loop, and calls back on the loop once it is safe."""


def beside(path: str) -> str:
    """Return the temporary name of a file that will replace another; a start removes such files."""
    return f"{path}.tmp"


def written_beside(disk: Disk, path: str, content: bytes) -> File:
    """Write the content of a file under its temporary name, without a sync."""
    file = emptied_beside(disk, path)
    try:
        file.append((content,))
    except OSError:
        disk.remove(beside(path))  # it would take space on a full disk
        raise
    return file


def emptied_beside(disk: Disk, path: str) -> File:
    """Return an empty file under the temporary name of a path."""
    file = disk.open(beside(path), create=True)
    if file.size():
        file.truncate(0)
    return file


def carry_out_now(disk: Disk, steps: ChangeSteps[T]) -> T:
    """Carry out a change with blocking syncs, while no client is served."""
    while True:
        try:
            sync = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        sync.carry_out(disk)


class Change(Generic[T]):
    """A change in progress. Its end is reported once: with its result, or an `OSError`."""

    __slots__ = ("_done", "_failed", "_steps", "is_over")

    def __init__(
        self, steps: ChangeSteps[T], done: Callable[[T], None], failed: Callable[[OSError], None]
    ) -> None:
        self._steps = steps
        self._done = done
        self._failed = failed
        self.is_over = False

    def advance(self) -> Sync | None:
        """Continue up to the next sync; None says that the change is complete."""
        if self.is_over:
            return None
        try:
            return next(self._steps)
        except StopIteration as end:
            self.is_over = True
            self._done(end.value)
        except OSError as error:
            self.is_over = True
            self._failed(error)
        return None

    def finish(self, disk: Disk) -> None:
        """Carry out the rest with blocking syncs. A sync that runs in a thread is repeated."""
        while (sync := self.advance()) is not None:
            sync.carry_out(disk)

    def abandon(self) -> None:
        """Abandon the change, and report that it failed."""
        if not self.is_over:
            self.is_over = True
            self._steps.close()
            self._failed(ChangeAbandonedError("the log was closed or truncated meanwhile"))


class Changes:
    """The changes of one log, one after the other."""

    __slots__ = ("_closed", "_log", "_running", "_sync_later", "_waiting")

    def __init__(self, log: "Log", sync_later: SyncLater) -> None:
        self._log = log
        self._sync_later = sync_later
        self._running: Change[Any] | None = None
        self._waiting: list[Change[Any]] = []
        self._closed = False

    def start(
        self, steps: ChangeSteps[T], done: Callable[[T], None], failed: Callable[[OSError], None]
    ) -> None:
        """Carry out a change once those before it are over."""
        change = Change(steps, done, failed)
        if self._closed:
            change.abandon()
        elif self._running is None:
            self._run(change)
        else:
            self._waiting.append(change)

    def close(self) -> None:
        """Abandon every change: another topic may soon use the folder."""
        self._closed = True
        waiting, self._waiting = self._waiting, []
        if self._running is not None:
            waiting.insert(0, self._running)
        for change in waiting:
            change.abandon()
        self._log.change = None

    def _run(self, change: Change[Any]) -> None:
        self._running = self._log.change = change
        self._go_on(change)

    def _go_on(self, change: Change[Any]) -> None:
        """Continue after a sync, with this change or the next one."""
        sync = change.advance()
        if sync is not None:
            self._sync_later(sync, lambda: self._go_on(change))
            return
        self._running = self._log.change = None
        if self._waiting:
            self._run(self._waiting.pop(0))
