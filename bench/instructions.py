"""Counts the instructions that a broker process executes per request, with valgrind's callgrind.

    python -m bench.instructions produce            # or: produce-flushed-later, fetch, commit
    python -m bench.instructions produce --tree ../other-checkout --tls

Sixteen connections send one request each, wait for all responses, and repeat. The broker runs
twice, with few and with many requests; the difference excludes its start. Counts hardly differ
from run to run, however busy the machine is, so a change of one percent shows. They do not cover
waits, system calls or the processor's caches. It needs valgrind.
"""

import argparse
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from barnabas.cli.cert.authority import Authority
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from bench.micro import commit, frame, produce

KINDS = ("produce", "produce-flushed-later", "fetch", "commit")
FLUSHED_LATER = {"flush": "interval", "flush.ms": "600000"}
CONNECTIONS = 16
FEW, MANY = 100, 1_100
TOPIC = "requests"
START_S = 300
LENGTH_BYTES = 4
STORED_BATCHES = 5
FETCH_VERSION = 11


def main() -> None:
    """Count for one kind of request."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--tree", type=Path, default=Path(), help="the checkout to measure")
    parser.add_argument("--tls", action="store_true", help="send the requests over TLS")
    wanted = parser.parse_args()
    few, many = (
        run(wanted.tree.resolve(), wanted.kind, rounds, with_tls=wanted.tls)
        for rounds in (FEW, MANY)
    )
    count = (many - few) / ((MANY - FEW) * CONNECTIONS)
    print(f"{wanted.kind}{' over TLS' * wanted.tls}: {count:,.0f} instructions per request")


def run(tree: Path, kind: str, rounds: int, *, with_tls: bool) -> int:
    """Start a broker under callgrind, send requests, stop it; return the number of instructions."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.create_server(("127.0.0.1", 0)) as found:
            port = found.getsockname()[1]
        where = tls_settings(folder, port) if with_tls else ["--listen", f"127.0.0.1:{port}"]
        serve = ["-m", "barnabas.cli", "serve", *where]
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        command += [sys.executable, *serve, "--data", f"{folder}/data"]
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
        with Path(folder, "log").open("wb") as log:
            broker = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            try:
                load(port, kind, rounds, with_tls=with_tls)
            finally:
                broker.send_signal(signal.SIGTERM)
                broker.wait()
        (total,) = re.findall(r"^totals: (\d+)", Path(folder, "out").read_text(), re.MULTILINE)
        return int(total)


def tls_settings(folder: str, port: int) -> list[str]:
    """Write a certificate and the settings of a TLS listener; return the broker's arguments."""
    Authority(Path(folder), 1).sign_broker("broker", ["127.0.0.1"])
    settings = Path(folder, "settings.yaml")
    settings.write_text(
        f"listeners: {{TLS: {{listen: '127.0.0.1:{port}', protocol: SSL, "
        f"certificate: {folder}/broker.pem, key: {folder}/broker.key}}}}\n"
    )
    return ["--config", str(settings)]


def load(port: int, kind: str, rounds: int, *, with_tls: bool) -> None:
    """Send the requests, in step on all connections."""
    first = connect(port, with_tls=with_tls)
    chosen = FLUSHED_LATER if kind == "produce-flushed-later" else {}
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in chosen.items()]
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, configs=configs)
    ask(
        [first],
        frame(4, CreateTopicsRequest(timeout_ms=60_000, topics=[topic])),
    )
    request = produce(TOPIC, b"", 9, 1, 100)
    if kind == "commit":
        ask(
            [first],
            frame(4, FindCoordinatorRequest(coordinator_keys=["group"])),
        )
        request = commit(TOPIC, 1)
    if kind == "fetch":
        for _ in range(STORED_BATCHES):
            ask([first], produce(TOPIC, b"", 9, 100, 1_000))
        request = frame(FETCH_VERSION, whole_partition())
    connections = [connect(port, with_tls=with_tls) for _ in range(CONNECTIONS)]
    for _ in range(rounds):
        ask(connections, request)


def whole_partition() -> FetchRequest:
    """Return a fetch of all stored records, which leave by sendfile."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=TOPIC, partitions=[partition])
    return FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=[topic])


def connect(port: int, *, with_tls: bool = False) -> socket.socket:
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
            return encrypted(connection) if with_tls else connection


def encrypted(connection: socket.socket) -> ssl.SSLSocket:
    """Shake hands; the certificate is made for this run, and not verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection)


def ask(connections: list[socket.socket], request: bytearray) -> None:
    """Send a request on every connection, then read every response."""
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
