"""Simulates a slow link between two network interfaces: it delays, reorders and drops frames.

    python -m tests.support.clusters.cluster_delay NEAR FAR --delay-ms=80 --jitter-ms=40 --loss=0.01

It does what netem does, for kernels without it. Frames with an end outside the cluster pass at
once, so that clients notice only the effects on the brokers. Frames travel with the header in
which the kernel notes pending checksums and segmentation; without it, the other end would drop
them as damaged.
"""

import argparse
import contextlib
import heapq
import selectors
import socket
import time
from itertools import count
from random import Random
from typing import NamedTuple

from tests.support.clusters.cluster_places import OUTSIDE

SOL_PACKET = 263
PACKET_VNET_HDR = 15
EVERY_PROTOCOL = 0x0003
OUTGOING = 4
OWED_BYTES = 10
"""The header about checksums and segments, before the frame."""
SOURCE_AT = OWED_BYTES + 14 + 15
TARGET_AT = OWED_BYTES + 14 + 19
"""The last byte of the addresses of an IPv4 packet."""
FRAME_BYTES_MAX = 1 << 17
BUFFER_BYTES = 1 << 24


class Held(NamedTuple):
    """A delayed frame, ordered by its time of delivery."""

    due: float
    number: int
    out: socket.socket
    frame: bytes


class Link:
    """Two interfaces and the frames between them."""

    def __init__(self, near: str, far: str, options: argparse.Namespace) -> None:
        self._delay_s = options.delay_ms / 1000
        self._jitter_s = options.jitter_ms / 1000
        self._loss: float = options.loss
        self._rng = Random(options.seed)
        self._held: list[Held] = []
        self._numbers = count()
        self._selector = selectors.DefaultSelector()
        ends = [_tap(near), _tap(far)]
        self._selector.register(ends[0], selectors.EVENT_READ, ends[1])
        self._selector.register(ends[1], selectors.EVENT_READ, ends[0])

    def run(self) -> None:
        """Pass frames until the process ends."""
        while True:
            wait_s = self._held[0].due - time.monotonic() if self._held else None
            for key, _ in self._selector.select(wait_s if wait_s is None else max(0.0, wait_s)):
                assert isinstance(key.fileobj, socket.socket)
                self._take(key.fileobj, key.data)
            while self._held and self._held[0].due <= time.monotonic():
                _send(*heapq.heappop(self._held)[2:])

    def _take(self, taken_from: socket.socket, out: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, address = taken_from.recvfrom(FRAME_BYTES_MAX)
                if address[2] == OUTGOING:
                    continue  # outgoing frames of our own
                if not between_nodes(frame):
                    _send(out, frame)
                elif self._rng.random() >= self._loss:
                    due = time.monotonic() + self._delay_s + self._rng.random() * self._jitter_s
                    heapq.heappush(self._held, Held(due, next(self._numbers), out, frame))


def between_nodes(frame: bytes) -> bool:
    """Whether both ends of a frame are nodes; not true for ARP and similar protocols."""
    if len(frame) <= TARGET_AT or frame[OWED_BYTES + 12 : OWED_BYTES + 14] != b"\x08\x00":
        return False
    return OUTSIDE not in (frame[SOURCE_AT], frame[TARGET_AT])


def _tap(interface: str) -> socket.socket:
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
    tap.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    tap.bind((interface, EVERY_PROTOCOL))
    tap.setblocking(False)
    return tap


def _send(out: socket.socket, frame: bytes) -> None:
    # A full buffer loses the frame, as on any link; TCP sends it again.
    with contextlib.suppress(OSError):
        out.send(frame)


def main() -> None:
    """Read the command line and pass frames."""
    parser = argparse.ArgumentParser()
    parser.add_argument("near")
    parser.add_argument("far")
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--jitter-ms", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    Link(options.near, options.far, options).run()


if __name__ == "__main__":
    main()
