"""A running broker: starts it, times it until it is ready, creates topics, stops it.

Ready means that it answers a Metadata request on a plain socket with at least one broker: a client
that gets this response can continue. The request is sent every 5 ms from the start of the process.
"""

import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import Broker
from bench.internal_topics import configured
from bench.places import LOGS
from bench.process import LoadError, Process, Usage, wait_until

READY_TIMEOUT_S = 60.0
READY_POLL_S = 0.005
ADMIN_TIMEOUT_S = 20.0
SETTLED_BYTES = 64_000_000
METADATA_OF_NO_TOPIC = struct.pack(">hhih5si", 3, 1, 1, 5, b"bench", 0)


class Running:
    """One broker process and the port it listens on."""

    def __init__(self, process: Process, data: Path, port: int, ready_ms: float) -> None:
        self.process = process
        self.data = data
        self.port = port
        self.ready_ms = ready_ms
        """From the start of the process until it answered Metadata."""
        self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    @property
    def address(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"

    def usage(self) -> Usage:
        """The usage of the broker so far."""
        return self.process.usage()

    @contextmanager
    def topic(self, name: str, partitions: int, config: dict[str, str]) -> Iterator[str]:
        """A topic that is ready to use, and is deleted afterwards with its bytes."""
        try:
            self.create_topic(name, partitions, config)
            yield name
        finally:
            with suppress(KafkaException, TimeoutError):
                finish(self._admin.delete_topics([name]))
            self.settle()

    @contextmanager
    def internal_topics(self, names: Sequence[str], config: dict[str, str]) -> Iterator[None]:
        """The broker's internal topics with these settings, for a while."""
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(configured(self._admin, self.address, name, config))
            yield

    def create_topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        """Create a topic and wait until its partitions have leaders."""
        try:
            finish(self._admin.create_topics([NewTopic(name, partitions, 1, config=config)]))
            wait_until("leaders", lambda: has_leaders(self._admin, name, partitions), 20)
        except (KafkaException, TimeoutError) as error:
            raise LoadError(f"cannot create a topic: {error}") from error

    def settle(self) -> None:
        """Wait until deleted bytes are gone and the rest is on disk, so that rows do not affect
        each other.
        """
        with suppress(LoadError):
            wait_until("deletion", lambda: bytes_under(self.data) < SETTLED_BYTES, 5)
        os.sync()


def finish(futures: dict[str, Future[None]], timeout_s: float = ADMIN_TIMEOUT_S) -> None:
    """Wait for an admin call; raise its error."""
    for future in futures.values():
        future.result(timeout_s)


def has_leaders(admin: AdminClient, topic: str, partitions: int) -> bool:
    """Whether clients can produce to every partition."""
    found = admin.list_topics(topic, timeout=ADMIN_TIMEOUT_S).topics[topic]
    leaders = [partition.leader for partition in found.partitions.values()]
    return len(leaders) == partitions and min(leaders) >= 0


def bytes_under(folder: Path) -> int:
    """Blocks in use below a folder that a broker changes meanwhile, without its internal topics."""
    total = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith("__")]
        for name in names:
            with suppress(OSError):
                total += (Path(parent) / name).stat().st_blocks * 512
    return total


@contextmanager
def running(broker: Broker, data: Path, port: int) -> Iterator[Running]:
    """Start the broker, wait until it answers, and always stop it at the end."""
    started = time.monotonic()
    with Process(broker.command(data, port), LOGS / f"{broker.name}.log") as process:
        wait_ready(process, port)
        yield Running(process, data, port, (time.monotonic() - started) * 1000)


def wait_ready(process: Process, port: int) -> None:
    """Poll until Metadata is answered or the process has ended."""
    give_up = time.monotonic() + READY_TIMEOUT_S
    while not answers_metadata(port):
        if not process.alive:
            raise LoadError(f"the broker ended: {process.last_words()[:200]}")
        if time.monotonic() > give_up:
            raise LoadError(f"no Metadata response within {READY_TIMEOUT_S:.0f} s of the start")
        time.sleep(READY_POLL_S)


def answers_metadata(port: int, timeout_s: float = 2.0) -> bool:
    """Whether a Metadata request is answered with at least one broker."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as client:
            size = len(METADATA_OF_NO_TOPIC)
            client.sendall(struct.pack(">i", size) + METADATA_OF_NO_TOPIC)
            return broker_count(client.recv(4096)) > 0
    except OSError:
        return False


def broker_count(reply: bytes) -> int:
    """The length of the broker array in a Metadata v1 response; 0 if it is incomplete."""
    if len(reply) < 12:
        return 0
    _size, _correlation, brokers = struct.unpack_from(">iii", reply)
    return int(brokers)
