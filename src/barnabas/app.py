"""Builds a broker process: connects a node to the real clock, disk and sockets."""

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO, TYPE_CHECKING
from weakref import finalize

from barnabas import logs
from barnabas.config.listener_settings import warnings
from barnabas.effects import Address, Scan
from barnabas.logs import get
from barnabas.model.callers import CLIENT_LISTENER, PEER_LISTENER, Listener
from barnabas.model.errors import BrokerError
from barnabas.model.meters import NO_METERS, Meters
from barnabas.model.pending import Pending
from barnabas.model.settings import Settings
from barnabas.model.steps import Steps
from barnabas.node.chores import checkpointing
from barnabas.node.chores.maintenance import Maintenance
from barnabas.node.cluster.peer_requests import voter_addresses
from barnabas.node.node import Node
from barnabas.raft.metadata_log import FOLDER as METADATA_FOLDER
from barnabas.security.scram_formulas import credentials_of
from barnabas.server.advertising import NoHostNameError, advertised_host
from barnabas.server.files.descriptors import SPARES, Shares, descriptor_limit, in_use, shares
from barnabas.server.files.disk import OsDisk
from barnabas.server.garbage import GarbageSettings
from barnabas.server.secret_files import read_secret
from barnabas.server.server import Server
from barnabas.server.tls.certificates import Certificates
from barnabas.server.tls.handshakes import ListenerTls

if TYPE_CHECKING:
    from barnabas.server.http.operator_listener import OperatorListener
    from barnabas.server.key_fetching import KeyFetcher

CHECKPOINT_INTERVAL_MS = 10_000
LEFT_OUT_INTERVAL_MS = 10_000
STOP_PATIENCE_S = 10
LEAVE_PATIENCE_S = 10
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
RESERVE = ".reserve"
PRIVATE = 0o700
RESERVE_BYTES = 64 * 1024
FEW_CONNECTIONS = 500

log = get("barnabas")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop where it is installed: half the cost of a request."""
    try:
        import uvloop  # noqa: PLC0415 - optional on platforms without it
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@dataclass(frozen=True, slots=True)
class FirstAdmin:
    """A user that is created in a cluster that has no users."""

    name: str
    password: str = field(repr=False)


class BrokerProcess:
    """A node with its server and its data folder, on an event loop."""

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        meters: Meters = NO_METERS,
        first_admin: FirstAdmin | None = None,
    ) -> None:
        self.settings = settings
        self.loop = loop
        is_metered = settings.observability.http_listen is not None or meters.is_collecting
        self.node = Node(
            settings, OsDisk(), Random(os.urandom(16)), os.urandom, is_metered=is_metered
        )
        authentication = self.node.authentication
        if first_admin is not None:
            authentication.first_admin = credentials_of(
                first_admin.name, first_admin.password, os.urandom
            )
        if settings.security.delegation_token_secret is not None:
            authentication.signer.use(read_secret(settings.security.delegation_token_secret))
        self.server = self._make_server(meters)
        self.certificates = Certificates(self.server)
        self.listeners: dict[str, tuple[str, int]] = {}
        """Where clients connect to, by the name of the listener."""
        self.peer_address: tuple[str, int] | None = None
        """Where other brokers connect to; None in a cluster of one."""
        self._maintenance = Maintenance(self.node, self.server.wall_clock_ms)
        self.operators = self._operator_listener()
        self._lock: IO[bytes] | None = None
        self._token_keys = self._key_fetcher() if authentication.has_oauth else None
        self._release_spares = finalize(self, SPARES.release)
        SPARES.hold()
        self._garbage = GarbageSettings()

    def _make_server(self, meters: Meters) -> Server:
        """Return the server, which counts requests if metrics are served."""
        if self.settings.observability.http_listen is None or meters.is_collecting:
            return Server(self.node, self.loop, meters)
        # Only here, so that a broker without metrics starts faster.
        from barnabas.server.http.operator_listener import metered_server  # noqa: PLC0415

        return metered_server(self.node, self.loop)

    def _operator_listener(self) -> "OperatorListener | None":
        """Return the HTTP listener, if the settings ask for one."""
        if self.settings.observability.http_listen is None:
            return None
        from barnabas.server.http.operator_listener import OperatorListener  # noqa: PLC0415
        from barnabas.server.metrics.metered_server import MeteredServer  # noqa: PLC0415

        if not isinstance(self.server, MeteredServer):
            return None  # another collector counts
        return OperatorListener(self.server, self._maintenance)

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
        for problem in warnings(self.settings):
            log.warning("the configuration is not safe", problem=problem)
        self._bind_clients()
        if self.operators is not None:
            self._bind_operators(self.operators)
        if self.settings.cluster.voters:
            self._bind_peers()
        self._share_files(shares(descriptor_limit(), in_use()))
        release_reserve(folder)
        serving = self.node.start(self.server.wall_clock_ms())
        fill_reserve(folder)
        make_private(folder / METADATA_FOLDER)
        if self.operators is not None:
            self.operators.listen()
        self.server.listen(peers=True)
        self._maintenance.start()
        if self._token_keys is not None:
            self._token_keys.fetch()
        self.certificates.start()
        self._tell_left_out()
        self.node.timers.after(CHECKPOINT_INTERVAL_MS, self._checkpoint)
        self.server.run_event(lambda: None)
        await self._done(serving)
        await self._create_configured_topics()
        self.server.listen(peers=False)
        self._garbage.freeze_loaded_objects()
        return self.node.advertised

    def reload_certificates(self) -> None:
        """Read all certificates again; those that cannot be used change nothing."""
        self.server.run_event(self.certificates.reload)

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
        if self._token_keys is not None:
            self._token_keys.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self._release_spares()
        self._garbage.restore()

    def _bind(
        self,
        host: str,
        port: int,
        flag: str,
        named: Listener,
        tls: ListenerTls | None = None,
        max_connections: int = 0,
    ) -> tuple[str, int]:
        try:
            return self.server.bind(
                host, port, named=named, max_connections=max_connections, tls=tls
            )
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno == errno.EADDRINUSE:
                reason = f"the port is in use; stop what uses it, or choose another with {flag}"
            raise CannotStartError(f"cannot listen on {host}:{port}: {reason}") from error

    def _bind_clients(self) -> None:
        """Bind all listeners for clients, and find out what they are advertised as."""
        for each in self.settings.client_listeners:
            is_named = bool(self.settings.listeners)
            key = f"listeners.{each.name}.advertised" if is_named else "broker.advertised_host"
            tls = self.certificates.of_listener(each)
            named = Listener(each.name, protocol=each.protocol)
            host, port = self._bind(
                each.host, each.port, "--listen", named, tls, each.max_connections
            )
            shown = self._shown(host, each.advertised_host, key)
            self.listeners[each.name] = shown, each.advertised_port or port
        self.node.advertised = next(iter(self.listeners.values()))
        if self.listeners.keys() != {CLIENT_LISTENER.name}:
            self.node.endpoints = self.listeners

    def _bind_operators(self, operators: "OperatorListener") -> None:
        try:
            operators.bind()
        except OSError as error:
            where, reason = operators.wanted, error.strerror or str(error)
            raise CannotStartError(
                f"cannot listen on {where} for HTTP: {reason}; choose another address with --http"
            ) from error

    def _shown(self, host: str, configured: str | None, key: str) -> str:
        try:
            found = advertised_host(host, configured, key)
        except NoHostNameError as error:
            raise CannotStartError(str(error)) from error
        if found not in (host, configured):
            log.info("advertised under the name of this machine", host=found, to_change=key)
        return found

    def _bind_peers(self) -> None:
        """Bind the listener for other brokers; a voter's address is in the list of voters."""
        cluster = self.settings.cluster
        tls = self.certificates.of_peers()
        known = voter_addresses(cluster.voters).get(self.node.node_id)
        port = cluster.port or (0 if known is None else known.port)
        host, found = self._bind(cluster.host, port, "--peer-listen", PEER_LISTENER, tls)
        configured = cluster.advertised_host if known is None else known.host
        shown = self._shown(host, configured, "cluster.advertised_host")
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

    def _tell_left_out(self) -> None:
        logs.tell_left_out()
        self.node.timers.after(LEFT_OUT_INTERVAL_MS, self._tell_left_out)

    def _store_checkpoint(self) -> Steps[None]:
        self.server.driver.in_background((yield from checkpointing.checkpoint(self.node)))

    def _key_fetcher(self) -> "KeyFetcher":
        """Return what keeps the keys of tokens fresh.

        It is imported here, since its HTTP client takes 2 MB, and time at the start.
        """
        from barnabas.server.key_fetching import KeyFetcher  # noqa: PLC0415

        place, keys = self.settings.security.oauth_keys or "", self.node.authentication.token_keys
        return KeyFetcher(place, keys, self.loop, self.server.run_event)

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


def make_private(folder: Path) -> None:
    """Keep other users of the machine out of a folder: the metadata has the keys of passwords."""
    try:
        folder.chmod(PRIVATE)
    except OSError as error:
        log.warning("other users can read the metadata", folder=str(folder), problem=str(error))


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


def serve(
    settings: Settings,
    ready: Callable[[BrokerProcess], None],
    first_admin: FirstAdmin | None = None,
) -> None:
    """Run a broker until SIGTERM or SIGINT; a second signal ends it at once."""
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    broker = BrokerProcess(settings, loop, first_admin=first_admin)
    stopping = asyncio.Event()
    logs.identify(settings.broker.node_id, lambda: broker.node.image.cluster_id)
    logs.limit_lines(settings.observability.log_lines_max)

    def on_signal() -> None:
        stopping.set()
        # From here on the kernel handles the signal, even if the loop is busy.
        end_on_signals(loop)

    async def main() -> None:
        end_on_signals(loop)  # until it serves, there is nothing to stop cleanly
        loop.add_signal_handler(signal.SIGHUP, broker.reload_certificates)
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
