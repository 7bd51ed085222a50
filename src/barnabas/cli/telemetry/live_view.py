"""Show a running pipeline: as a table that stays in place, plain lines, or JSON lines."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from barnabas.admin.wording import format_duration, plural
from barnabas.cli.common.output import console, say, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from barnabas.telemetry.jobs.job_progress import JobProgress, Totals
    from barnabas.telemetry.jobs.supervising import Picture

TITLES = ("JOB", "STATE", "BATCHES", "ROWS", "ROWS/S", "LAG", "BATCH", "HELD", "WATERMARK")
REASONS_SHOWN = 4
Show = Callable[["Picture"], None]


@contextmanager
def display(footer: str, *, as_json: bool) -> Iterator[Show]:
    """Return the display; the footer shows locations and the next commands."""
    if as_json:
        yield lambda picture: say_now(json.dumps(document(picture)))
    elif not sys.stdout.isatty():
        yield lambda picture: say_now("\n".join(lines(picture)))
    else:
        from rich.live import Live

        with Live(console=console(), auto_refresh=False) as live:
            yield lambda picture: live.update(drawing(picture, footer), refresh=True)


def say_now(text: str) -> None:
    """Print a line and flush it, for readers of a pipe."""
    say(text)
    sys.stdout.flush()


def document(picture: "Picture") -> dict[str, object]:
    """Return the state as JSON."""
    totals = picture.totals
    return {
        "elapsed_s": round(picture.elapsed_s, 1),
        "broker_answers": picture.broker_answers,
        "jobs": [
            {
                "job": each.name,
                "state": each.state,
                "batches": each.batches,
                "rows": each.rows,
                "rows_per_s": round(each.rows_per_s, 1),
                "lag": each.lag,
                "lag_unit": each.lag_unit,
                "batch_ms": each.batch_ms,
                "held_rows": each.state_rows,
                "watermark": moment(each.watermark_us),
                "restarts": each.restarts,
                "error": each.error or None,
            }
            for each in picture.jobs
        ],
        "totals": {
            "messages": totals.messages,
            "samples": totals.samples,
            "late": totals.late,
            "refused": dict(totals.refused),
            "findings": totals.findings,
            "alerts": totals.alerts,
        },
    }


def lines(picture: "Picture") -> list[str]:
    """Return the state as plain lines: one for each job, one for all."""
    found = [f"{each.name:<9} {'  '.join(words(each))}" for each in picture.jobs]
    return [*found, f"{format_duration(picture.elapsed_s * 1000)}: {totals_line(picture.totals)}"]


def words(each: "JobProgress") -> list[str]:
    """Return the state of a job as one line."""
    said = [
        each.state,
        f"{each.batches:,} batch{'' if each.batches == 1 else 'es'}",
        f"{plural(each.rows, 'row')} ({each.rows_per_s:,.0f}/s)",
        f"lag {lag_text(each)}",
    ]
    if each.batch_ms is not None:
        said.append(f"last {format_duration(each.batch_ms)}")
    if each.state_rows is not None:
        said.append(f"holds {each.state_rows:,}")
    if each.watermark_us is not None:
        said.append(f"watermark {moment(each.watermark_us)}")
    if each.error:
        said.append(f"({each.error})")
    return said


def drawing(picture: "Picture", footer: str) -> "RenderableType":
    """Return the state as a table."""
    from rich.console import Group
    from rich.text import Text

    rows = [row(each) for each in picture.jobs]
    parts: list[RenderableType] = [table(TITLES, rows), Text("")]
    if not picture.broker_answers:
        parts.append(Text("The broker does not answer; the lag shown is the last known"))
    parts += [Text(f"{each.name}: {each.error}") for each in picture.jobs if each.error]
    elapsed = format_duration(picture.elapsed_s * 1000)
    parts.append(Text(f"{elapsed}: {totals_line(picture.totals)}"))
    parts.append(Text(footer))
    return Group(*parts)


def row(each: "JobProgress") -> tuple[object, ...]:
    """Return a job as a row of the table."""
    return (
        each.name,
        each.state if not each.restarts else f"{each.state} (restarts: {each.restarts})",
        each.batches,
        f"{each.rows:,}",
        f"{each.rows_per_s:,.0f}",
        lag_text(each),
        None if each.batch_ms is None else format_duration(each.batch_ms),
        None if each.state_rows is None else f"{each.state_rows:,}",
        moment(each.watermark_us),
    )


def lag_text(each: "JobProgress") -> str:
    """Return the lag of a job."""
    return "-" if each.lag is None else f"{each.lag:,} {each.lag_unit}"


def totals_line(totals: "Totals") -> str:
    """Return a summary of the run in one sentence."""
    said = [
        f"{plural(totals.messages, 'message')} with {plural(totals.samples, 'sample')}",
        f"{totals.late:,} late",
        f"{totals.refused_count:,} refused",
        plural(totals.findings, "finding"),
        plural(totals.alerts, "alert"),
    ]
    reasons = ", ".join(f"{n:,} {name}" for name, n in totals.refused.most_common(REASONS_SHOWN))
    return ", ".join(said) + (f" ({reasons})" if reasons else "")


def moment(time_us: int | None) -> str | None:
    """Return an event time as text."""
    if time_us is None:
        return None
    found = datetime.fromtimestamp(time_us / 1e6, UTC)
    return found.isoformat(timespec="seconds").replace("+00:00", "Z")
