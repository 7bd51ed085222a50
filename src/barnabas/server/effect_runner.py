"""Carries out the node's effects: syncs, deletions, compaction, requests to brokers, log lines.

Syncs run on a few threads, since the system call releases the interpreter lock: those that
producers wait for on some threads, those of deletions, swaps and snapshots on others. Compaction
runs in a separate process: it works on each record and would hold the interpreter lock.

Compaction, scrubbing and short chores (removals, checkpoints) have one thread each: the first two
take minutes, and must not delay each other or the removals that make room on a full disk.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

from barnabas.effects import (
    Ask,
    AuditLine,
    Clean,
    Effect,
    Flush,
    MakeDurable,
    Notice,
    Remove,
    Scan,
    Verify,
)
from barnabas.logs import get
from barnabas.model.errors import SyncFailedError, TooOldError
from barnabas.model.ports import Disk
from barnabas.node.node import Node
from barnabas.server.files.audit_file import AuditFile
from barnabas.server.files.descriptors import is_exhausted
from barnabas.server.files.durable_threads import DurableThreads
from barnabas.server.files.sync_threads import SyncThreads
from barnabas.server.peers.peer_links import PeerConnections
from barnabas.server.scans import Scans
from barnabas.storage.compacting.compaction import Cleaned, Group
from barnabas.storage.flush import FlushTask, carry_out

RunEvent = Callable[..., None]
OnSync = Callable[[int, int, int], None]
"""Takes the nanoseconds at which an fsync began and ended, and how many appends it was for."""
CRITICAL = "critical"
CANNOT_GO_ON = 70
"""The exit code after a failed sync, and other failures after which the broker must not run."""
SYNC_AGAIN_S = 0.05
STDERR = 2
SAY_AGAIN_AFTER = 200
"""One of this many attempts is logged: about one every ten seconds."""

log = get("barnabas.server")


class EffectDriver:
    """Carries out the effects of one node."""

    def __init__(
        self,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        run_event: RunEvent,
        peers: PeerConnections,
        on_sync: OnSync | None = None,
    ) -> None:
        self._node = node
        self._loop = loop
        self._run_event = run_event
        self._peers = peers
        threads = node.settings.storage.flush_threads
        self._on_sync = on_sync
        sync = self._sync_flush if on_sync is None else self._sync_timed
        self._syncers = SyncThreads(threads, loop, sync, self._synced)
        self._durable = DurableThreads(node.disk, loop, self._made_durable, stop_at_once)
        self._chores = ThreadPoolExecutor(1, thread_name_prefix="chore")
        self._cleaning = ThreadPoolExecutor(1, thread_name_prefix="cleaning")
        self._scrubbing = ThreadPoolExecutor(1, thread_name_prefix="scrubbing")
        self._scans = Scans(loop, run_event)
        self._audit = AuditFile(node.settings.security.audit_file or "", self.in_background)
        self._children: set[subprocess.Popen[bytes]] = set()
        self._closing = False
        self.syncing = 0
        """How many flushes wait for an fsync or are running one."""
        self._idle = asyncio.Event()
        self._idle.set()

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Carry out effects, or start them."""
        for effect in effects:
            match effect:
                case Flush():
                    self.syncing += 1
                    self._idle.clear()
                    self._syncers.submit(effect)
                case MakeDurable():
                    self._durable.submit(effect)
                case Remove():
                    delay_s, chore = effect.delay_ms / 1000, partial(self._remove, effect)
                    self._loop.call_later(delay_s, self.in_background, chore)
                case Clean():
                    self.in_background(partial(self._clean, effect), self._cleaning)
                case Verify():
                    self.in_background(partial(self._verify, effect), self._scrubbing)
                case Scan():
                    self._scans.submit(effect)
                case Ask():
                    self._peers.ask(effect)
                case Notice() | AuditLine():
                    self._say(effect)
        self._peers.flush()

    def _say(self, notice: Notice | AuditLine) -> None:
        """Write a line of the audit log or of the log; a critical one ends the process."""
        if isinstance(notice, AuditLine):
            self._audit.add(notice.text)
            return
        getattr(log, notice.level)(notice.event, **notice.facts)
        if notice.level == CRITICAL:
            os._exit(CANNOT_GO_ON)

    def in_background(
        self, chore: Callable[[], None], pool: ThreadPoolExecutor | None = None
    ) -> None:
        """Run something slow off the event loop; log a failure.

        Without a pool it runs on the thread of the short chores.
        """

        def run() -> None:
            try:
                chore()
            except SyncFailedError as error:  # which a future would hide
                stop_at_once(error)
            except Exception:
                log.exception("background work failed")

        with contextlib.suppress(
            RuntimeError
        ):  # the broker is stopping; its next start does this again
            (pool or self._chores).submit(run)

    async def synced(self, patience_s: float) -> None:
        """Wait until no sync is running, for a limited time."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), patience_s)

    def close(self) -> None:
        """Wait for syncs; abandon the rest, which the next start does again."""
        self._closing = True
        self._syncers.close()
        self._durable.close()
        for child in list(self._children):
            child.kill()
        self._scans.close()
        self._audit.write()
        for pool in (self._cleaning, self._scrubbing, self._chores):
            pool.shutdown(wait=True, cancel_futures=True)

    def sync(self, task: FlushTask) -> None:
        """Sync a log's files."""
        sync_or_stop(self._node.disk, task)

    def _sync_flush(self, flush: Flush) -> None:
        self.sync(flush.task)

    def _sync_timed(self, flush: Flush) -> None:
        """Sync a log's files, and tell how long that took."""
        started_ns = time.perf_counter_ns()
        self.sync(flush.task)
        if self._on_sync is not None:
            self._on_sync(started_ns, time.perf_counter_ns(), flush.appends)

    def _synced(self, flushes: list[Flush]) -> None:
        self._run_event(self._finish, flushes)

    def _finish(self, flushes: list[Flush]) -> None:
        self.syncing -= len(flushes)
        for flush in flushes:
            try:
                flush.done()
            except Exception:
                log.exception("an event failed", callback="Flush.done")
        if not self.syncing:
            self._idle.set()

    def _made_durable(self, requests: list[MakeDurable]) -> None:
        self._run_event(self._go_on, requests)

    @staticmethod
    def _go_on(requests: list[MakeDurable]) -> None:
        for request in requests:
            try:
                request.done()
            except Exception:
                log.exception("an event failed", callback="MakeDurable.done")

    def _remove(self, effect: Remove) -> None:
        for path in effect.paths:
            self._node.disk.remove_tree(path)
            with contextlib.suppress(OSError):
                self._node.disk.remove(path)

    def _clean(self, effect: Clean) -> None:
        done: Cleaned | None = None
        try:
            output = self._run_apart({"clean": effect.plan.to_dict()}, effect.plan.folder)
            if output is None:
                # A process that was killed could not remove its output.
                self._node.disk.remove_tree(effect.plan.output)
            else:
                groups, *facts = json.loads(output)
                done = Cleaned([Group(*group) for group in groups], *facts)
        finally:  # in any case, since the node waits for it
            self._report(effect.done, done)

    def _verify(self, effect: Verify) -> None:
        found: list[tuple[str, int]] = []
        try:
            output = self._run_apart({"verify": effect.files}, self._node.settings.broker.data_dir)
            if output is not None:
                found = [(path, position) for path, position in json.loads(output)]
        finally:
            self._report(effect.done, found)

    def _run_apart(self, job: dict[str, Any], folder: str) -> bytes | None:
        """Do a job in a separate process; return None if it failed or was stopped."""
        child = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "barnabas.server.files.cleaner", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._children.add(child)
        output, problem = child.communicate(json.dumps(job).encode())
        self._children.discard(child)
        if child.returncode == 0:
            return output
        if not self._closing:
            text = problem.decode(errors="replace").strip().splitlines()
            reason = text[-1:] if child.returncode > 0 else f"killed by signal {-child.returncode}"
            facts = {"job": next(iter(job)), "folder": folder, "problem": reason}
            log.error("background work failed", **facts)
        return None

    def _report(self, callback: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the broker is stopping
            self._loop.call_soon_threadsafe(self._run_event, callback, *arguments)


def sync_or_stop(disk: Disk, task: FlushTask) -> None:
    """Sync a log's files. A sync that failed is never tried again: the process stops.

    If the process has too many open files to open one more, no sync was tried. The written data is
    as safe as before, so the whole task is carried out again a moment later.
    """
    for attempt in count():
        problem = _unopened(disk, task)
        if problem is None:
            return
        if attempt % SAY_AGAIN_AFTER == 0:
            log.error("cannot open a file to sync it; retrying", problem=problem)
        time.sleep(SYNC_AGAIN_S)


def _unopened(disk: Disk, task: FlushTask) -> str | None:
    """Carry out a task; return the error if a file for it cannot be opened."""
    try:
        carry_out(disk, task)
    except SyncFailedError as error:
        stop_at_once(error)
    except OSError as error:
        if is_exhausted(error):
            return str(error)
        stop_at_once(error)
    return None


def stop_at_once(error: BaseException) -> None:
    """End the process after a failed sync; waiting clients get no answer."""
    event, problem = "a sync failed, so this process stops", str(error.__cause__ or error)
    try:
        log.error(event, problem=problem)
    except Exception:  # noqa: BLE001 - the operator must see it even if logging fails
        with contextlib.suppress(OSError):
            os.write(STDERR, f"barnabas: {event}: {problem}\n".encode(errors="replace"))
    os._exit(CANNOT_GO_ON)


def stop_too_old(error: TooOldError) -> None:
    """End the process: its release cannot read the cluster's metadata."""
    with contextlib.suppress(Exception):
        log.error("this release is too old for its cluster, so it stops", problem=str(error))
    os._exit(CANNOT_GO_ON)
