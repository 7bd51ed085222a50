"""Wires real clock, disk and sockets to a node: the only module that knows all of them."""

import asyncio
import contextlib
import fcntl
import gc
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import IO

from barnabas.controller import topics as topic_decisions
from barnabas.logs import get
from barnabas.metadata.records import MetadataRecord
from barnabas.model.errors import ConfigError
from barnabas.model.settings import Settings
from barnabas.node.maintenance import Maintenance
from barnabas.node.node import Node
from barnabas.server.disk import OsDisk
from barnabas.server.server import Server

CHECKPOINT_INTERVAL_MS = 10_000
STOP_PATIENCE_S = 10
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
    """A node with everything around it, on an event loop."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        self.loop = loop
        self.node = Node(settings, OsDisk(), Random(os.urandom(16)))
        self.server = Server(self.node, loop)
        self.address = ("", 0)
        self._maintenance = Maintenance(self.node, self.server.wall_clock_ms)
        self._lock: IO[bytes] | None = None

    def start(self) -> tuple[str, int]:
        """Load the data and listen; return the address that clients connect to."""
        raise_descriptor_limit()
        folder = Path(self.settings.broker.data_dir)
        make_lasting(folder)
        self._lock = lock_folder(folder)
        self.node.start(self.server.wall_clock_ms())
        self._create_configured_topics()
        host, port = self.server.listen(self.settings.broker.host, self.settings.broker.port)
        self.address = (host, port)
        self.node.advertised = self._advertised(host, port)
        self._maintenance.start()
        self.node.timers.after(CHECKPOINT_INTERVAL_MS, self._checkpoint)
        self.server.run_event(lambda: None)
        spare_the_collector()
        return self.node.advertised

    async def stop(self) -> None:
        """Stop cleanly: answer what is under way, sync everything, leave the clean marker."""
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
        self.node.stop()
        if self._lock is not None:
            self._lock.close()

    def _flush_all(self) -> None:
        for partition in self.node.partitions.values():
            partition.flush()

    def _advertised(self, host: str, port: int) -> tuple[str, int]:
        broker = self.settings.broker
        shown = broker.advertised_host or host
        if shown in WILDCARDS:
            shown = "localhost"
        return shown, broker.advertised_port or port

    def _checkpoint(self) -> None:
        points = self.node.recovery_points()
        self.server.driver.in_background(
            lambda: self.node.checkpoints.write_recovery_points(points)
        )
        self.node.timers.after(CHECKPOINT_INTERVAL_MS, self._checkpoint)

    def _create_configured_topics(self) -> None:
        """Make the topics that the settings name and that do not exist yet."""
        node, records = self.node, list[MetadataRecord]()
        for topic in self.settings.topics:
            if topic.name in node.image.topics:
                continue
            broker, replication = self.settings.broker, self.settings.replication
            replicas = topic_decisions.place(
                topic.partitions or broker.default_partitions,
                topic.replication_factor or replication.default_replication_factor,
                node.nodes,
            )
            records.append(
                topic_decisions.create_topic(
                    node.image, topic.name, replicas, topic.config, node.topic_defaults, node.rng
                )
            )
        if records:
            node.commit_now(records, self.server.wall_clock_ms())


def spare_the_collector() -> None:
    """Leave what was loaded out of garbage collection, and collect the rest less often.

    A request leaves next to no cycles behind, and a full collection stops the loop.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def raise_descriptor_limit() -> None:
    """Ask for as many open files and connections as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or soft < hard:
        with contextlib.suppress(ValueError, OSError):
            wanted = 1_000_000 if hard == resource.RLIM_INFINITY else hard
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def make_lasting(folder: Path) -> None:
    """Make the data folder and its parents such that a power cut does not take them away."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        OsDisk().sync_folder(str(path.parent))


def lock_folder(folder: Path) -> IO[bytes]:
    """Make sure that no other broker writes here."""
    lock = (folder / ".lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise ConfigError(
            f"another broker is using {folder}; stop it, or choose another folder with --data"
        ) from None
    return lock


def serve(settings: Settings, ready: Callable[[str, int], None]) -> None:
    """Run a broker until SIGTERM or SIGINT; a second signal ends it at once."""
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    broker = BrokerProcess(settings, loop)
    stopping = asyncio.Event()

    def on_signal() -> None:
        if stopping.is_set():
            os._exit(130)
        stopping.set()

    async def main() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal)
        ready(*broker.start())
        await stopping.wait()
        log.info("stopping")
        await broker.stop()
        log.info("stopped")

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
