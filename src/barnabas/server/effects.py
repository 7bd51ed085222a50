"""Carrying out what the node asks for: syncs, deletions, compaction, questions, log lines.

Syncs run on a few threads (the system call lets go of the interpreter): those that producers wait
for on some, those of deletions, swaps and snapshots on others. Compaction runs in a
process of its own: its work is per record and would otherwise take turns with the loop.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from barnabas.effects import Ask, Clean, Effect, Flush, MakeDurable, Notice, Remove, Verify
from barnabas.logs import get
from barnabas.model.errors import SyncFailedError, TooOldError
from barnabas.node.node import Node
from barnabas.server.durable_threads import DurableThreads
from barnabas.server.peers import PeerConnections
from barnabas.server.sync_threads import SyncThreads
from barnabas.storage.compaction import Cleaned, Group
from barnabas.storage.flush import FlushTask, carry_out

RunEvent = Callable[..., None]
CRITICAL = "critical"
CANNOT_GO_ON = 70
"""The exit code after a failed sync, and wherever else going on would do harm."""

log = get("barnabas.server")


class EffectDriver:
    """The hands of one node."""

    def __init__(
        self,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        run_event: RunEvent,
        peers: PeerConnections,
    ) -> None:
        self._node = node
        self._loop = loop
        self._run_event = run_event
        self._peers = peers
        threads = node.settings.storage.flush_threads
        self._syncers = SyncThreads(
            threads, loop, lambda flush: self.sync(flush.task), self._synced
        )
        self._durable = DurableThreads(node.disk, loop, self._made_durable, stop_at_once)
        self._chores = ThreadPoolExecutor(2, thread_name_prefix="chore")
        self._children: set[subprocess.Popen[bytes]] = set()
        self._syncing = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Do, or start to do, everything asked for."""
        for effect in effects:
            match effect:
                case Flush():
                    self._syncing += 1
                    self._idle.clear()
                    self._syncers.submit(effect)
                case MakeDurable():
                    self._durable.submit(effect)
                case Remove():
                    delay_s, chore = effect.delay_ms / 1000, partial(self._remove, effect)
                    self._loop.call_later(delay_s, self.in_background, chore)
                case Clean():
                    self.in_background(partial(self._clean, effect))
                case Verify():
                    self.in_background(partial(self._verify, effect))
                case Ask():
                    self._peers.ask(effect)
                case Notice():
                    getattr(log, effect.level)(effect.event, **effect.facts)
                    if effect.level == CRITICAL:
                        os._exit(CANNOT_GO_ON)
        self._peers.flush()

    def in_background(self, chore: Callable[[], None]) -> None:
        """Run something slow that nobody waits for; where it fails, say so."""

        def run() -> None:
            try:
                chore()
            except Exception:
                log.exception("background work failed")

        with contextlib.suppress(RuntimeError):  # we are stopping; a start picks it up again
            self._chores.submit(run)

    async def synced(self, patience_s: float) -> None:
        """Wait until no sync is under way, but not for ever."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), patience_s)

    def close(self) -> None:
        """Wait for syncs; abandon the rest, which a start picks up again."""
        self._syncers.close()
        self._durable.close()
        for child in list(self._children):
            child.kill()
        self._chores.shutdown(wait=True, cancel_futures=True)

    def sync(self, task: FlushTask) -> None:
        """Sync a log's files. A sync that failed is never tried again: the process stops."""
        try:
            carry_out(self._node.disk, task)
        except (SyncFailedError, OSError) as error:
            stop_at_once(error)

    def _synced(self, flushes: list[Flush]) -> None:
        self._run_event(self._finish, flushes)

    def _finish(self, flushes: list[Flush]) -> None:
        self._syncing -= len(flushes)
        for flush in flushes:
            try:
                flush.done()
            except Exception:
                log.exception("an event failed", callback="Flush.done")
        if not self._syncing:
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
            output = self._run_apart({"clean": effect.plan.to_dict()})
            if output is not None:
                groups, *facts = json.loads(output)
                done = Cleaned([Group(*group) for group in groups], *facts)
        finally:  # whatever happens, else the node would wait for it for ever
            self._report(effect.done, done)

    def _verify(self, effect: Verify) -> None:
        found: list[tuple[str, int]] = []
        try:
            output = self._run_apart({"verify": effect.files})
            if output is not None:
                found = [(path, position) for path, position in json.loads(output)]
        finally:
            self._report(effect.done, found)

    def _run_apart(self, job: dict[str, Any]) -> bytes | None:
        """Do a job in a process of its own; None where it failed or was stopped."""
        child = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "barnabas.server.cleaner", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._children.add(child)
        output, problem = child.communicate(json.dumps(job).encode())
        self._children.discard(child)
        if child.returncode == 0:
            return output
        if child.returncode > 0:
            text = problem.decode(errors="replace").strip().splitlines()
            log.error("background work failed", job=next(iter(job)), problem=text[-1:])
        return None

    def _report(self, callback: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone: we are stopping
            self._loop.call_soon_threadsafe(self._run_event, callback, *arguments)


def stop_at_once(error: BaseException) -> None:
    """End the process after a failed sync, without a word to anybody who waits for an answer."""
    with contextlib.suppress(Exception):
        log.error("a sync failed, so this process stops", problem=str(error.__cause__ or error))
    os._exit(CANNOT_GO_ON)


def stop_too_old(error: TooOldError) -> None:
    """End the process: its release cannot read the cluster's metadata."""
    with contextlib.suppress(Exception):
        log.error("this release is too old for its cluster, so it stops", problem=str(error))
    os._exit(CANNOT_GO_ON)
