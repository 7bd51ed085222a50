"""Common code of `collect` and `simulate`: options, progress, and the summary at the end."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.connecting import require_listener, settings
from barnabas.admin.wording import format_duration, plural
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.output import print_json, say
from barnabas.cli.common.progress import Progress, ProgressLines
from barnabas.config.units import format_size, parse_size

if TYPE_CHECKING:
    from barnabas.telemetry.collect.publishing import Publisher
    from barnabas.telemetry.collect.spool import Spool

INTERRUPT_PATIENCE_S = 10.0
INTERRUPT_PATIENCE_WAITING_S = 0.5
"""The same if no broker answers, or a spool keeps undelivered messages."""
PROBE_TIMEOUT_S = 0.5
SPOOL_LIMIT = "1GB"
SPOOL_LIMIT_MIN = 65_536
DRAW_EVERY_S = 0.1

Topic = Annotated[str, typer.Option("--topic", help="The topic.")]
Refused = Annotated[
    str, typer.Option("--dlq", metavar="TOPIC", help="The dead-letter topic for unreadable lines.")
]
Partitions = Annotated[int, typer.Option(min=1, help="Number of partitions of a new topic.")]
Speed = Annotated[str, typer.Option(help="1 is real time, 10 ten times as fast, or max.")]
TickAfter = Annotated[
    str,
    typer.Option(
        "--tick",
        metavar="DURATION",
        help="How far to advance event time after the last sample, to close windows; 0s: not.",
    ),
]

ProgressEvery = Annotated[
    str,
    typer.Option(
        "--progress",
        metavar="DURATION",
        help="How often to print a line if stderr is not a terminal; 0s: never.",
    ),
]
SpoolFolder = Annotated[
    Path | None,
    typer.Option(
        "--spool",
        metavar="DIR",
        help="Keep messages in this directory while no broker accepts them.",
    ),
]
SpoolLimit = Annotated[
    str,
    typer.Option(
        metavar="SIZE", help="Maximum size of the spool; beyond it the oldest messages are dropped."
    ),
]
LINE_EVERY = "10s"
"""The default of --progress."""

CLOSING = "3m"
"""The default of --tick: longer than windows wait for late samples and for fast clocks."""


def parse_speed(text: str) -> float:
    """Parse a speed; 0 means max."""
    if text.strip().lower() == "max":
        return 0.0
    try:
        speed = float(text.strip().lower().removesuffix("x"))
    except ValueError:
        speed = -1.0
    if not 0 < speed < float("inf"):
        raise CommandError(f"--speed {text!r} is not a speed; write 1, 10, 0.5 or max")
    return speed


def parse_instant_ms(text: str, option: str) -> int:
    """Parse a time: now, or ISO 8601 (UTC without a zone)."""
    if text.strip().lower() == "now":
        return time.time_ns() // 1_000_000
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise CommandError(
            f"{option} {text!r} is not a time; write now or 2026-11-15T06:54:00Z"
        ) from None
    moment = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return round(moment.timestamp() * 1000)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where samples are sent."""

    bootstrap: str
    properties: list[str] | None
    topic: str
    refused_topic: str
    partitions: int

    spool: Path | None = None
    spool_limit: str = SPOOL_LIMIT

    def open(self, source: str) -> "Publisher":
        """Create missing topics and return the sender."""
        from barnabas.telemetry.collect.delivering import Delivery
        from barnabas.telemetry.collect.publishing import Publisher

        client = settings(self.bootstrap, self.properties)
        spool = self._open_spool()
        if spool is None:
            require_listener(self.bootstrap)
            self._ensure_topics()
        is_ready = spool is None or self._prepare()
        if not is_ready and spool is not None:
            warn(f"No broker answered at {self.bootstrap}; messages will wait in {spool.folder}")
        prepare = (lambda: True) if is_ready else self._prepare
        delivery = Delivery(client, spool=spool, prepare=prepare, tell=warn)
        names = {"topic": self.topic, "refused_topic": self.refused_topic}
        return Publisher(delivery, **names, source=source)

    def _prepare(self) -> bool:
        """Create missing topics, if a broker answers."""
        from confluent_kafka import KafkaException

        try:
            require_listener(self.bootstrap, PROBE_TIMEOUT_S)
            self._ensure_topics()
        except (AdminError, KafkaException):
            return False
        return True

    def _ensure_topics(self) -> None:
        from barnabas.telemetry.collect.publishing import ensure_topic

        client = settings(self.bootstrap, self.properties)
        for topic, partitions in ((self.topic, self.partitions), (self.refused_topic, 1)):
            warning = ensure_topic(client, topic, partitions=partitions)
            if warning and topic == self.topic:
                warn(warning)

    def _open_spool(self) -> "Spool | None":
        from barnabas.telemetry.collect.spool import Spool, SpoolError

        try:
            limit = parse_size(self.spool_limit)
        except ValueError:
            limit = -1
        if limit < SPOOL_LIMIT_MIN:
            raise CommandError(
                f"--spool-limit {self.spool_limit!r} is not a size; write 1GB, at least 64KB"
            )
        if self.spool is None:
            return None
        try:
            spool = Spool(self.spool, limit)
        except SpoolError as error:
            raise CommandError(str(error)) from error
        if spool.damaged_bytes:
            warn(f"{spool.damaged_bytes:,} bytes in {self.spool} were truncated and are skipped")
        return spool


@dataclass
class Stop:
    """Ctrl-C and SIGTERM: the first asks the source to end, the second interrupts it.

    A source that cannot check, because it waits for another process, is interrupted by the first.
    """

    is_polled: bool = False
    is_requested: bool = field(default=False, init=False)

    def __call__(self, *_: object) -> None:
        """Handle a signal."""
        if self.is_polled and not self.is_requested:
            self.is_requested = True
        else:
            self.is_requested = True
            raise KeyboardInterrupt

    def requested(self) -> bool:
        """Return whether to end."""
        return self.is_requested


class Display:
    """Progress on stderr: samples, their rate, and errors."""

    def __init__(
        self,
        publisher: "Publisher",
        note: Callable[[], str] = lambda: "",
        *,
        line_every_ms: int,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the interval for lines if stderr is not a terminal.

        `watch` is called as often as the display is drawn.
        """
        self._publisher = publisher
        self._note = note
        self._watch = watch
        self._progress = Progress("samples")
        self._lines = ProgressLines("samples", line_every_ms / 1000)
        self._drawn_s = 0.0
        self.started_s = time.monotonic()

    def draw(self) -> None:
        """Show the current state, at most ten times a second."""
        self._publisher.poll()
        now_s = time.monotonic()
        if now_s - self._drawn_s < DRAW_EVERY_S:
            return
        self._drawn_s = now_s
        self._watch()
        account = self._publisher.account
        notes = [
            f"{account.refused:,} refused" if account.refused else "",
            f"{account.failed:,} FAILED ({self._publisher.trouble})" if account.failed else "",
            *self._waiting(),
            f"{account.dropped:,} DROPPED" if account.dropped else "",
            self._note(),
        ]
        note = "  ".join(each for each in notes if each)
        self._progress.update(account.samples, account.samples, note)
        self._lines.update(account.samples, note)

    def _waiting(self) -> list[str]:
        """Return what waits for a broker, and where."""
        delivery = self._publisher.delivery
        if not delivery.is_waiting:
            return []
        spool = delivery.spool
        if spool is not None and spool.messages:
            return [f"{spool.messages:,} kept ({spool.size:,} bytes)"]
        return [f"{delivery.waiting:,} wait for a broker ({self._publisher.trouble})"]

    def close(self) -> None:
        """Remove the line."""
        self._progress.__exit__(None, None, None)


@contextmanager
def sending(publisher: "Publisher", display: Display, stop: Stop | None = None) -> Iterator[None]:
    """Flush in every case; Ctrl-C and SIGTERM end the sending, but the summary is still printed."""
    stop = stop or Stop()
    delivery = publisher.delivery
    delivery.while_full, delivery.is_stopping = display.draw, stop.requested
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(each, stop) for each in signals]
    try:
        yield
        if stop.is_requested:
            publisher.give_up(_patience_s(publisher))
        else:
            publisher.finish(display.draw)
    except KeyboardInterrupt:
        publisher.give_up(_patience_s(publisher))
    except BaseException:
        publisher.give_up(INTERRUPT_PATIENCE_S)
        raise
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
        display.close()


def _patience_s(publisher: "Publisher") -> float:
    """Return how long to wait for messages in flight at the end."""
    delivery = publisher.delivery
    is_short = delivery.is_waiting or delivery.spool is not None
    return INTERRUPT_PATIENCE_WAITING_S if is_short else INTERRUPT_PATIENCE_S


def report(
    publisher: "Publisher", seconds: float, extra: dict[str, object], *, topic: str, as_json: bool
) -> None:
    """Print the summary; exit with code 1 if something was not delivered."""
    account = publisher.account
    spool = publisher.delivery.spool
    kept = spool.messages if spool else 0
    sent = account.found + account.messages + account.refused
    delivered = sent - account.failed - account.unknown - account.dropped - kept
    if as_json:
        print_json(
            {
                "topic": topic,
                "messages": account.messages,
                "samples": account.samples,
                "delivered": delivered,
                "failed": account.failed,
                "undecided": account.unknown,
                "kept": kept,
                "dropped": account.dropped,
                "refused": account.refused,
                "first_refusals": [
                    {"where": each.where, "reason": each.reason} for each in account.first_refusals
                ],
                "seconds": round(seconds, 3),
                "samples_per_second": round(account.samples / max(seconds, 1e-9)),
                **extra,
            }
        )
    else:
        _tell(publisher, seconds, topic)
    lost = account.failed + account.unknown + account.dropped
    if lost:
        reasons = [*account.failures, *(["the spool was full"] if account.dropped else [])]
        raise CommandError(
            f"{lost:,} messages were not delivered "
            f"({'; '.join(reasons) or publisher.trouble or 'interrupted'})"
        )


def _tell(publisher: "Publisher", seconds: float, topic: str) -> None:
    account = publisher.account
    rate = account.samples / max(seconds, 1e-9)
    say(
        f"{plural(account.samples, 'sample')} in {plural(account.messages, 'message')} "
        f"to {topic} in {format_duration(seconds * 1000)} ({rate:,.0f} samples/s)"
    )
    spool = publisher.delivery.spool
    if spool is not None and spool.messages:
        size = format_size(spool.size)
        say(
            f"{plural(spool.messages, 'message')} ({size}) wait in {spool.folder} "
            "for the next start"
        )
    if account.refused:
        say(f"{plural(account.refused, 'line')} could not be read; the first:")
        for each in account.first_refusals:
            say(f"  {each.where}: {each.reason}")
