"""Measures how long a broker takes to start on a large log, after a clean stop and after a crash.

    python -m tools.recovery_time --gigabytes 10 --batch-bytes 1000000

Builds one partition of that size in a temporary folder, then starts a node on it three times:
after a clean stop, after a crash with recovery points of a moment before, and after a crash with
none, where every byte is read and checked. Files are dropped from the page cache before each
start. The folder is deleted at the end.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from barnabas.controller import topic_decisions as topics
from barnabas.effects import Flush
from barnabas.model.ids import TopicPartition
from barnabas.model.settings import BrokerSettings, Settings
from barnabas.model.steps import finish
from barnabas.node.chores.checkpointing import checkpoint
from barnabas.node.node import Node
from barnabas.protocol.records import parse_header
from barnabas.server.files.disk import OsDisk
from barnabas.storage.checkpoints import CLEAN_MARKER, RECOVERY_POINTS
from barnabas.storage.flush import carry_out
from barnabas.storage.log import RESUME_FILE
from tests.support.talk.batches import make_batch

NAME = TopicPartition("large", 0)
PARTITION = "topics/large/0"
GIGABYTE = 1_000_000_000
SINCE_CHECKPOINT_MEGABYTES = 500
"""The bytes appended after the last checkpoint, as within ten busy seconds."""


def new_node(folder: Path) -> Node:
    """Return a node on a folder, not yet started."""
    settings = Settings(broker=BrokerSettings(data_dir=str(folder)))
    return Node(settings, OsDisk(), Random(1))


def now_ms() -> int:
    """Return the time of day."""
    return time.time_ns() // 1_000_000


def settle(node: Node) -> None:
    """Carry out the syncs a node asks for."""
    while node.outbox:
        effects, node.outbox[:] = node.outbox[:], []
        for effect in effects:
            if isinstance(effect, Flush):
                carry_out(node.disk, effect.task)
                effect.done()


def build(folder: Path, size: int, batch_bytes: int, since: int) -> None:
    """Write a log of about this many bytes and stop cleanly."""
    node = new_node(folder)
    node.start(now_ms())
    replicas = topics.place(1, 1, node.nodes)
    defaults = node.topic_defaults
    record = topics.create_topic(node.image, NAME.topic, replicas, {}, defaults, node.rng)
    node.commit([record], now_ms())
    settle(node)
    append(node, size - since, batch_bytes)
    finish(checkpoint(node))()
    settle(node)
    append(node, since, batch_bytes)
    for path in kept(folder):  # a clean stop removes or replaces them
        shutil.copy(path, folder / f"{path.name}.kept")
    node.stop()


def kept(folder: Path) -> list[Path]:
    """Return the files that say where recovery begins."""
    paths = [folder / RECOVERY_POINTS, folder / PARTITION / RESUME_FILE]
    return [path for path in paths if path.exists()]


def append(node: Node, size: int, batch_bytes: int) -> None:
    """Append batches until so many bytes are written, and sync them."""
    log = node.partitions[NAME].log
    batch = make_batch([(b"key", Random(1).randbytes(batch_bytes - 100))], timestamp=now_ms())
    header = parse_header(batch)
    end = log.size + size
    while log.size < end:
        log.append(batch, header, 0)
    log.flush()


def forget_pages(folder: Path) -> None:
    """Have the kernel drop a folder's files from memory."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed_start(folder: Path, prepare: Callable[[], None]) -> str:
    """Return the duration of a start, and how much of the log it found."""
    prepare()
    forget_pages(folder)
    node = new_node(folder)
    began = time.perf_counter()
    node.start(now_ms())
    took = time.perf_counter() - began
    log = node.partitions[NAME].log
    return f"{took:8.3f} s  ({log.size / GIGABYTE:.2f} GB, {log.end_offset} records)"


def measure(folder: Path, size: int, batch_bytes: int, since: int) -> None:
    """Build the log, and start in every way."""
    points, marker = folder / RECOVERY_POINTS, folder / CLEAN_MARKER
    partition = folder / PARTITION
    began = time.perf_counter()
    build(folder, size, batch_bytes, since)
    print(f"built {size / GIGABYTE:.1f} GB in {time.perf_counter() - began:.0f} s")

    def crash_with_points() -> None:
        marker.unlink(missing_ok=True)
        for path in (points, partition / RESUME_FILE):
            if (folder / f"{path.name}.kept").exists():
                shutil.copy(folder / f"{path.name}.kept", path)

    def crash_without_points() -> None:
        marker.unlink(missing_ok=True)
        points.unlink()

    print("clean stop:            ", timed_start(folder, lambda: None))
    print("crash, recent points:  ", timed_start(folder, crash_with_points))
    print("crash, no points:      ", timed_start(folder, crash_without_points))


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--batch-bytes", type=int, default=1_000_000)
    since = SINCE_CHECKPOINT_MEGABYTES
    parser.add_argument("--since-megabytes", type=float, default=since, help="after a checkpoint")
    parser.add_argument("--folder", type=Path, default=None, help="where to create the folder")
    options = parser.parse_args()
    size = int(options.gigabytes * GIGABYTE)
    folder = Path(tempfile.mkdtemp(prefix="recovery-time-", dir=options.folder))
    try:
        if shutil.disk_usage(folder).free < 2 * size:
            sys.exit(f"{folder} needs twice {options.gigabytes} GB of free space")
        measure(folder, size, options.batch_bytes, int(options.since_megabytes * 1_000_000))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
