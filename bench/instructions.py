"""Counts the instructions that a broker process executes per request, with valgrind's callgrind.

    python -m bench.instructions produce            # or: produce-flushed-later, commit
    python -m bench.instructions produce --tree ../other-checkout

Sixteen connections send one request each, wait for all answers, and begin again. The broker runs
twice, with few and with many requests; the difference leaves its start out. Counts hardly differ
from run to run, however busy the machine is, so a change of one percent shows. They say nothing of
waits, of system calls or of the processor's caches. Needs valgrind.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from bench.micro import commit, frame, produce

KINDS = ("produce", "produce-flushed-later", "commit")
FLUSHED_LATER = {"flush": "interval", "flush.ms": "600000"}
CONNECTIONS = 16
FEW, MANY = 100, 1_100
TOPIC = "requests"
START_S = 120
LENGTH_BYTES = 4


def main() -> None:
    """Count for one kind of request."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--tree", type=Path, default=Path(), help="the checkout to measure")
    wanted = parser.parse_args()
    few, many = (run(wanted.tree.resolve(), wanted.kind, rounds) for rounds in (FEW, MANY))
    count = (many - few) / ((MANY - FEW) * CONNECTIONS)
    print(f"{wanted.kind}: {count:,.0f} instructions a request")


def run(tree: Path, kind: str, rounds: int) -> int:
    """Start a broker under callgrind, send it requests, stop it; return what it executed."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.create_server(("127.0.0.1", 0)) as found:
            port = found.getsockname()[1]
        serve = ["-m", "barnabas.cli", "serve", "--listen", f"127.0.0.1:{port}"]
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        command += [sys.executable, *serve, "--data", f"{folder}/data"]
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
        with Path(folder, "log").open("wb") as log:
            broker = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            try:
                load(port, kind, rounds)
            finally:
                broker.send_signal(signal.SIGTERM)
                broker.wait()
        (total,) = re.findall(r"^totals: (\d+)", Path(folder, "out").read_text(), re.MULTILINE)
        return int(total)


def load(port: int, kind: str, rounds: int) -> None:
    """Send the requests, in step on all connections."""
    first = connect(port)
    chosen = FLUSHED_LATER if kind == "produce-flushed-later" else {}
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in chosen.items()]
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, configs=configs)
    ask([first], frame(19, 4, CreateTopicsRequest(timeout_ms=60_000, topics=[topic])))
    request = produce(TOPIC, b"", 9, 1, 100)
    if kind == "commit":
        ask([first], frame(10, 4, FindCoordinatorRequest(coordinator_keys=["group"])))
        request = commit(TOPIC, 1)
    connections = [connect(port) for _ in range(CONNECTIONS)]
    for _ in range(rounds):
        ask(connections, request)


def connect(port: int) -> socket.socket:
    """Connect as soon as the broker listens."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def ask(connections: list[socket.socket], request: bytearray) -> None:
    """Send a request on every connection, then take every answer."""
    content = len(request).to_bytes(LENGTH_BYTES, "big") + request
    for connection in connections:
        connection.sendall(content)
    for connection in connections:
        left = int.from_bytes(take(connection, LENGTH_BYTES), "big")
        take(connection, left)


def take(connection: socket.socket, size: int) -> bytes:
    """Receive so many bytes."""
    content = bytearray()
    while len(content) < size:
        received = connection.recv(size - len(content))
        if not received:
            raise ConnectionError("the broker closed the connection")
        content += received
    return bytes(content)


if __name__ == "__main__":
    main()
