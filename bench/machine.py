"""Collects facts about the machine and the versions, so that results can be interpreted later."""

import mmap
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import confluent_kafka

from bench.places import KAFKA_VERSION, ROOT, package_version

BUSY_LOAD = 0.7


def facts() -> dict[str, str]:
    """The facts at the head of the results."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": f"{processor()}, {os.cpu_count()} cores, {memory_gb():.0f} GB of memory",
        "system": f"{platform.system()} {platform.release()}",
        "load before the run": load_text(os.getloadavg()[0]),
        "Barnabas": f"{package_version()} on Python {platform.python_version()}",
        "Apache Kafka": f"{KAFKA_VERSION} on Java {java_version()}",
        "clients": f"Kafka's tools {KAFKA_VERSION}, librdkafka {librdkafka_version()} "
        f"(groups: {confluent_kafka.libversion()[0]}), sockets",
    }


def warm_memory(gigabytes: int) -> None:
    """Touch free memory, so that the next process does not pay for it.

    The host of a virtual machine reclaims free memory, and returns it on first touch, at a third of
    the speed of a broker. Otherwise the first writer would pay for the second.
    """
    if not gigabytes:
        return
    zeros = bytes(1 << 20)
    with mmap.mmap(-1, gigabytes << 30) as memory:
        for start in range(0, len(memory), len(zeros)):
            memory[start : start + len(zeros)] = zeros


def load_text(load: float) -> str:
    """The load average; other work may slow down only one of the brokers."""
    warning = "; **the machine was busy: do not trust these figures**" if load > BUSY_LOAD else ""
    return f"{load:.2f} (one-minute average){warning}"


def commit() -> str:
    """The measured commit, with a mark if the tree has changes."""
    name = first_line(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"])
    changed = first_line(["git", "-C", str(ROOT), "status", "--porcelain", "--", "src"])
    return f"{name} with changes" if changed else name


def processor() -> str:
    """The name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def memory_gb() -> float:
    """Physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def java_version() -> str:
    """`17.0.15` of `openjdk 17.0.15 2025-04-15`."""
    words = first_line(["java", "--version"]).split()
    return words[1] if len(words) > 1 else "?"


def librdkafka_version() -> str:
    """The version that load.c is built against."""
    return first_line(["pkg-config", "--modversion", "rdkafka"]) or "?"


def first_line(command: list[str]) -> str:
    """The output of a command; empty if it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.partition("\n")[0].strip()
