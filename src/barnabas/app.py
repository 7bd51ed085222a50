"""Builds a broker process: connects a node to the real clock, disk and sockets."""

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import IO
from weakref import finalize

from barnabas.effects import Address, Scan
from barnabas.logs import get
from barnabas.model.errors import BrokerError
from barnabas.model.meters import NO_METERS, Meters
from barnabas.model.pending import Pending
from barnabas.model.settings import Settings
from barnabas.model.steps import Steps
from barnabas.node.chores import checkpointing
from barnabas.node.chores.maintenance import Maintenance
from barnabas.node.cluster.peer_requests import voter_addresses
from barnabas.node.node import Node
from barnabas.server.descriptors import SPARES, Shares, descriptor_limit, in_use, shares
from barnabas.server.disk import OsDisk
from barnabas.server.garbage import GarbageSettings
from barnabas.server.server import Server

CHECKPOINT_INTERVAL_MS = 10_000
STOP_PATIENCE_S = 10
LEAVE_PATIENCE_S = 10
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
RESERVE = ".reserve"
RESERVE_BYTES = 64 * 1024
FEW_CONNECTIONS = 500
WILDCARDS = {"0.0.0.0", "::", ""}  # noqa: S104 - compared with, not bound to

log = get("barnabas")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop where it is installed: half the cost of a request."""
    try:
        import uvloop  # noqa: PLC0415 - optional on platforms without it
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class BrokerProcess:
    """A node with its server and its data folder, on an event loop."""

    def __init__(
        self, settings: Settings, loop: asyncio.AbstractEventLoop, meters: Meters = NO_METERS
    ) -> None:
        self.settings = settings
        self.loop = loop
        self.node = Node(settings, OsDisk(), Random(os.urandom(16)))
        self.server = Server(self.node, loop, meters)
        self.address = ("", 0)
        self.peer_address: tuple[str, int] | None = None
        """Where other brokers connect to; None in a cluster of one."""
        self._maintenance = Maintenance(self.node, self.server.wall_clock_ms)
        self._lock: IO[bytes] | None = None
        self._release_spares = finalize(self, SPARES.release)
        SPARES.hold()
        self._garbage = GarbageSettings()

    async def start(self) -> tuple[str, int]:
        """Load the data and listen; return the address that clients connect to.

        In a cluster this takes until the controller has registered this broker. It serves other
        brokers from the beginning, and clients from then on. A start that fails, or is cancelled,
        leaves no lock, no thread and no open port.
        """
        try:
            return await self._start()
        except BaseException:
            self._abandon()
            raise

    async def _start(self) -> tuple[str, int]:
        self._garbage.raise_gc_threshold()
        folder = Path(self.settings.broker.data_dir)
        self.node.timers.now_ms = self.server.monotonic_ms()
        self.node.timers.wall_ms = self.server.wall_clock_ms()
        self._lock = open_folder(folder)
        # Bound before anything is written, accepting after everything is read.
        broker, cluster = self.settings.broker, self.settings.cluster
        self.address = self._bind(broker.host, broker.port, "--listen")
        self.node.advertised = self._advertised(*self.address)
        if cluster.voters:
            self._bind_peers()
        self._share_files(shares(descriptor_limit(), in_use()))
        release_reserve(folder)
        serving = self.node.start(self.server.wall_clock_ms())
        fill_reserve(folder)
        self.server.listen(peers=True)
        self._maintenance.start()
        self.node.timers.after(CHECKPOINT_INTERVAL_MS, self._checkpoint)
        self.server.run_event(lambda: None)
        await self._done(serving)
        await self._create_configured_topics()
        self.server.listen(peers=False)
        self._garbage.freeze_loaded_objects()
        return self.node.advertised

    async def stop(self) -> None:
        """Stop cleanly: move leadership to other brokers, sync all logs, write the clean marker."""
        try:
            await self._stop()
        except BaseException:
            self._abandon()
            raise
        self._give_back()

    async def _stop(self) -> None:
        if not self.node.is_alone:
            await self._leave()
        self.server.stop_listening()
        self.server.run_event(self._flush_all)
        await self.server.driver.synced(STOP_PATIENCE_S)
        self.server.close_all()
        self.server.driver.close()
        for partition in self.node.partitions.values():
            task = partition.log.begin_flush()
            if task is not None:
                self.server.driver.sync(task)
                partition.log.finish_flush(task)
        try:
            self.node.stop()
        except OSError as error:
            log.warning("stopped without the clean marker", problem=str(error))

    def _abandon(self) -> None:
        """Release everything after a failed start or stop; the next start recovers the logs."""
        self.server.stop_listening()
        self.server.close_all()
        self.server.driver.close()
        self._give_back()

    def _give_back(self) -> None:
        """Release the folder's lock and restore the garbage collector's settings."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self._release_spares()
        self._garbage.restore()

    def _bind(self, host: str, port: int, flag: str, *, peers: bool = False) -> tuple[str, int]:
        try:
            return self.server.bind(host, port, peers=peers)
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno == errno.EADDRINUSE:
                reason = f"the port is in use; stop what uses it, or choose another with {flag}"
            raise CannotStartError(f"cannot listen on {host}:{port}: {reason}") from error

    def _bind_peers(self) -> None:
        """Bind the listener for other brokers; a voter's address is in the list of voters."""
        cluster = self.settings.cluster
        known = voter_addresses(cluster.voters).get(self.node.node_id)
        port = cluster.port or (0 if known is None else known.port)
        host, found = self._bind(cluster.host, port, "--peer-listen", peers=True)
        shown = cluster.advertised_host or host
        if known is not None:
            shown = known.host
        elif shown in WILDCARDS:
            shown = "localhost"
        self.peer_address = shown, found
        self.node.peer_address = Address(shown, found)

    def _share_files(self, found: Shares) -> None:
        """Divide the limit of open files among logs and connections; warn where it is low."""
        self.server.shares = found
        self.node.partitions_max = found.partitions
        self.node.disk.open_files.share(found.pool, self.server.connections)
        if found.connections < FEW_CONNECTIONS:
            event = "few files may be open; raise the limit of the process (ulimit -n)"
            log.warning(event, **found.allows(0))

    def _flush_all(self) -> None:
        for partition in self.node.partitions.values():
            partition.flusher.flush()

    def _advertised(self, host: str, port: int) -> tuple[str, int]:
        broker = self.settings.broker
        shown = broker.advertised_host or host
        if shown in WILDCARDS:
            shown = "localhost"
        return shown, broker.advertised_port or port

    def _store_checkpoint(self) -> Steps[None]:
        self.server.driver.in_background((yield from checkpointing.checkpoint(self.node)))

    def _checkpoint(self) -> None:
        scan = Scan(checkpointing.LANE, checkpointing.LANE, self._store_checkpoint())
        self.node.outbox.append(scan)
        self.node.timers.after(CHECKPOINT_INTERVAL_MS, self._checkpoint)

    async def _create_configured_topics(self) -> None:
        """Create the topics that the settings name and that do not exist yet."""
        broker, replication = self.settings.broker, self.settings.replication
        for topic in self.settings.topics:
            if topic.name in self.node.image.topics:
                continue
            replicas = topic.replication_factor or replication.default_replication_factor
            partitions = topic.partitions or broker.default_partitions
            made = self.node.creation.create(
                topic.name, partitions, replicas, topic.config, self.server.wall_clock_ms()
            )
            self.server.run_event(lambda: None)
            await self._done(made)

    async def _leave(self) -> None:
        """Move the leadership of partitions and of the quorum to other brokers."""
        leaving: list[Pending[None]] = []
        self.server.run_event(lambda: leaving.append(self.node.membership.leave()))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._done(leaving[0]), LEAVE_PATIENCE_S)
        self.server.run_event(self.node.quorum.raft.resign)

    async def _done(self, pending: Pending[None]) -> None:
        """Wait for a pending result of the node."""
        done: asyncio.Future[None] = self.loop.create_future()
        pending.when_done(done.set_result, done.set_exception)
        await done


class CannotStartError(BrokerError):
    """The broker cannot start on this machine; the message says what to change."""


def open_folder(folder: Path) -> IO[bytes]:
    """Create the data folder if there is none, and lock it against other brokers."""
    try:
        make_durable_folder(folder)
        return lock_folder(folder)
    except OSError as error:
        raise CannotStartError(
            f"cannot write to the data folder {folder}: {error.strerror}; "
            "make it writable, or choose another with --data"
        ) from error


def release_reserve(folder: Path) -> None:
    """Delete the reserve file, so that a broker can start on a full disk."""
    (folder / RESERVE).unlink(missing_ok=True)


def fill_reserve(folder: Path) -> None:
    """Reserve some space for the next start, with random bytes: no file system compresses them."""
    with contextlib.suppress(OSError):
        (folder / RESERVE).write_bytes(os.urandom(RESERVE_BYTES))


def make_durable_folder(folder: Path) -> None:
    """Create the data folder and its parents, and sync them, so that they survive a power cut."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        OsDisk().sync_folder(str(path.parent))


def lock_folder(folder: Path) -> IO[bytes]:
    """Lock the folder; raise if another broker uses it."""
    lock = (folder / ".lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise CannotStartError(
            f"another broker is using {folder}; stop it, or choose another folder with --data"
        ) from None
    return lock


def end_on_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Have the stop signals end the process at once."""
    for number in STOP_SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)


def serve(settings: Settings, ready: Callable[[BrokerProcess], None]) -> None:
    """Run a broker until SIGTERM or SIGINT; a second signal ends it at once."""
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    broker = BrokerProcess(settings, loop)
    stopping = asyncio.Event()

    def on_signal() -> None:
        stopping.set()
        # From here on the kernel handles the signal, even if the loop is busy.
        end_on_signals(loop)

    async def main() -> None:
        end_on_signals(loop)  # until it serves, there is nothing to stop cleanly
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        await broker.start()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, on_signal)
        ready(broker)
        log.info("files may be open", **broker.server.shares.allows(len(broker.node.partitions)))
        await stopping.wait()
        log.info("stopping")
        await broker.stop()
        log.info("stopped")

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
