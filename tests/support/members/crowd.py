"""Opens thousands of connections from a separate process, since each needs a file descriptor.

    python -m tests.support.members.crowd HOST PORT COUNT

connects all of them, sends one request on each, prints as a line of JSON how many got a response,
and keeps them connected until its standard input ends.
"""

import json
import resource
import selectors
import socket
import subprocess
import sys
import time

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.testing.raw_client import frame_of, framed

QUESTION = framed(frame_of(ApiVersionsRequest(), 0))
AT_ONCE = 500
PATIENCE_S = 120.0
SPARE_DESCRIPTORS = 100


def room() -> int:
    """Return how many connections a process can open here."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_DESCRIPTORS


def start(address: tuple[str, int], count: int) -> subprocess.Popen[str]:
    """Start the connections in another process."""
    command = [sys.executable, "-m", "tests.support.members.crowd", address[0], str(address[1])]
    return subprocess.Popen(
        [*command, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def served(crowd: subprocess.Popen[str]) -> int:
    """Wait until the process prints how many connections got a response."""
    assert crowd.stdout is not None
    line = crowd.stdout.readline()
    assert line, "the process of the connections has ended"
    return int(json.loads(line)["served"])


def _main(host: str, port: int, count: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients: list[socket.socket] = []
    answered = 0
    while len(clients) < count:
        some = [_connect(host, port) for _ in range(min(AT_ONCE, count - len(clients)))]
        answered += _ask(some)
        clients += some
    sys.stdout.write(json.dumps({"served": answered}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


def _connect(host: str, port: int) -> socket.socket:
    client = socket.create_connection((host, port), PATIENCE_S)
    client.setblocking(False)
    return client


def _ask(clients: list[socket.socket]) -> int:
    """Send a request on all connections at the same time; return how many got a response."""
    deadline = time.monotonic() + PATIENCE_S
    answered = 0
    with selectors.DefaultSelector() as selector:
        for client in clients:
            client.send(QUESTION)
            selector.register(client, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(1):
                selector.unregister(key.fileobj)
                assert isinstance(key.fileobj, socket.socket)
                answered += _has_answer(key.fileobj)
    return answered


def _has_answer(client: socket.socket) -> bool:
    try:
        return len(client.recv(4096)) > 4
    except ConnectionError:
        return False


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
