"""What `collect` and `simulate` share: options, progress, and the account at the end."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.connection import require_listener, settings
from barnabas.cli.durations import format_duration, parse_duration_ms
from barnabas.cli.failure import CommandError, warn
from barnabas.cli.output import plural, print_json, say
from barnabas.cli.progress import Progress, ProgressLines

if TYPE_CHECKING:
    from barnabas.telemetry.publishing import Publisher

INTERRUPT_PATIENCE_S = 10.0
DRAW_EVERY_S = 0.1

Topic = Annotated[str, typer.Option("--topic", help="Where to send.")]
Refused = Annotated[
    str, typer.Option("--dlq", metavar="TOPIC", help="Where lines go that cannot be read.")
]
Partitions = Annotated[
    int, typer.Option(min=1, help="How many partitions a missing topic is created with.")
]
Speed = Annotated[str, typer.Option(help="1 is real time, 10 ten times as fast, or max.")]
TickAfter = Annotated[
    str,
    typer.Option(
        "--tick",
        metavar="DURATION",
        help="How far to move event time on after the last sample, to close windows; 0s: not.",
    ),
]

ProgressEvery = Annotated[
    str,
    typer.Option(
        "--progress",
        metavar="DURATION",
        help="How often to print a line where stderr is not a terminal; 0s: never.",
    ),
]
LINE_EVERY = "10s"
"""The default of --progress."""

CLOSING = "3m"
"""The default of --tick: longer than windows wait for late samples and for fast clocks."""


def parse_speed(text: str) -> float:
    """Read a speed; 0 stands for max."""
    if text.strip().lower() == "max":
        return 0.0
    try:
        speed = float(text.strip().lower().removesuffix("x"))
    except ValueError:
        speed = -1.0
    if not 0 < speed < float("inf"):
        raise CommandError(f"--speed {text!r} is no speed; write 1, 10, 0.5 or max")
    return speed


def parse_interval_ms(text: str, option: str) -> int:
    """Read a span of time that may be shorter than a second: 30s, 0.5s, 100ms."""
    word = text.strip().lower()
    for unit, factor in (("ms", 1), ("s", 1000)):
        number = word.removesuffix(unit)
        if number != word and number.replace(".", "", 1).isdigit():
            return round(float(number) * factor)
    return parse_duration_ms(text, option)


def parse_instant_ms(text: str, option: str) -> int:
    """Read an instant: now, or ISO 8601 (UTC where it names no zone)."""
    if text.strip().lower() == "now":
        return time.time_ns() // 1_000_000
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise CommandError(
            f"{option} {text!r} is no time; write now or 2026-11-15T06:54:00Z"
        ) from None
    moment = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return round(moment.timestamp() * 1000)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where telemetry goes."""

    bootstrap: str
    properties: list[str] | None
    topic: str
    refused_topic: str
    partitions: int

    def open(self, source: str) -> "Publisher":
        """Make sure of the topics and return the way in."""
        from barnabas.telemetry.publishing import Publisher, ensure_topic

        require_listener(self.bootstrap)
        client = settings(self.bootstrap, self.properties)
        for topic, partitions in ((self.topic, self.partitions), (self.refused_topic, 1)):
            warning = ensure_topic(client, topic, partitions=partitions)
            if warning and topic == self.topic:
                warn(warning)
        return Publisher(client, topic=self.topic, refused_topic=self.refused_topic, source=source)


class Display:
    """Progress on stderr: samples, their rate, and what went wrong."""

    def __init__(
        self,
        publisher: "Publisher",
        note: Callable[[], str] = lambda: "",
        *,
        line_every_ms: int,
    ) -> None:
        """Take how often to print a line where stderr is not a terminal."""
        self._publisher = publisher
        self._note = note
        self._progress = Progress("samples")
        self._lines = ProgressLines("samples", line_every_ms / 1000)
        self._drawn_s = 0.0
        self.started_s = time.monotonic()

    def draw(self) -> None:
        """Show the present state, ten times a second at most."""
        self._publisher.poll()
        now_s = time.monotonic()
        if now_s - self._drawn_s < DRAW_EVERY_S:
            return
        self._drawn_s = now_s
        account = self._publisher.account
        notes = [
            f"{account.refused:,} refused" if account.refused else "",
            f"{account.failed:,} FAILED ({self._publisher.trouble})" if account.failed else "",
            self._note(),
        ]
        note = "  ".join(each for each in notes if each)
        self._progress.update(account.samples, account.samples, note)
        self._lines.update(account.samples, note)

    def close(self) -> None:
        """Take the line away."""
        self._progress.__exit__(None, None, None)


@contextmanager
def sending(publisher: "Publisher", display: Display) -> Iterator[None]:
    """Flush whatever happens; Ctrl-C and SIGTERM end the sending, not the account of it."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
        publisher.finish(display.draw)
    except KeyboardInterrupt:
        publisher.give_up(INTERRUPT_PATIENCE_S)
    except BaseException:
        publisher.give_up(INTERRUPT_PATIENCE_S)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        display.close()


def report(
    publisher: "Publisher", seconds: float, extra: dict[str, object], *, topic: str, as_json: bool
) -> None:
    """Print the account; leave with exit code 1 where something was not delivered."""
    account = publisher.account
    delivered = account.messages + account.refused - account.failed - account.unknown
    if as_json:
        print_json(
            {
                "topic": topic,
                "messages": account.messages,
                "samples": account.samples,
                "delivered": delivered,
                "failed": account.failed,
                "undecided": account.unknown,
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
    if account.failed or account.unknown:
        raise CommandError(
            f"{account.failed + account.unknown:,} messages were not delivered "
            f"({'; '.join(account.failures) or publisher.trouble or 'interrupted'})"
        )


def _tell(publisher: "Publisher", seconds: float, topic: str) -> None:
    account = publisher.account
    rate = account.samples / max(seconds, 1e-9)
    say(
        f"{plural(account.samples, 'sample')} in {plural(account.messages, 'message')} "
        f"to {topic} in {format_duration(seconds * 1000)} ({rate:,.0f} samples/s)"
    )
    if account.refused:
        say(f"{plural(account.refused, 'line')} could not be read; the first:")
        for each in account.first_refusals:
            say(f"  {each.where}: {each.reason}")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
