"""`barnabas telemetry report`: write or serve the HTML report, and print a summary."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.topic_positions import parse_time_ms
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import Json, Properties
from barnabas.cli.common.output import print_json, print_table, say
from barnabas.cli.telemetry.query_command import DEFAULT_LAKE, LakeFolder, open_lake, worded
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.samples.telemetry_topics import REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.telemetry.report.report_model import Report

HELP = """Write a report on the GPUs as one HTML page, and print a summary.

The page is self-contained: it works offline, in light and dark mode, on a phone and on paper.
"""
EPILOG = (
    "Example: barnabas telemetry report --lake lake --out monday.html --from 2026-03-02T00:00Z "
    "--to 2026-03-03T00:00Z --price-per-kwh 0.22 --currency EUR"
)
DEFAULT_PAGE = Path("report.html")

Serve = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Serve the page until Ctrl-C; it refreshes itself."),
]
Refresh = Annotated[
    str, typer.Option(help="With --serve: how old the page may be before it is computed again.")
]


def report(  # noqa: PLR0913 - one parameter an option
    *,
    lake: LakeFolder = DEFAULT_LAKE,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page; default: report.html, or none with --json."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this GPU: its UUID, or the end of it.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="As 2026-03-01T12:00:00Z.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="In the same format.")
    ] = None,
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "GPU fleet report",
    price_per_kwh: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Price of a kWh, including cooling; default: that of the lake's settings, "
            f"or {Thresholds.price_per_kwh}.",
        ),
    ] = None,
    price_per_gpu_hour: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Price of a GPU hour, busy or not; default: that of the lake's settings, "
            f"or {Thresholds.price_per_gpu_hour}.",
        ),
    ] = None,
    currency: Annotated[str, typer.Option(help="A symbol, or letters such as EUR.")] = "$",
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap", "-b", metavar="HOST:PORT", help="Count rejected records at this broker."
        ),
    ] = None,
    serve: Serve = None,
    refresh: Refresh = "30s",
    as_json: Json = False,
    properties: Properties = None,
) -> None:
    """Write a report on the GPUs."""
    from barnabas.telemetry.lake.lake_reading import Lake
    from barnabas.telemetry.report.gathering import gather
    from barnabas.telemetry.report.report_model import Wish

    kwh, gpu_hour = _prices(lake, price_per_kwh, price_per_gpu_hour)
    wish = Wish(
        title=title,
        gpu_id=gpu,
        start_s=_seconds(start, "--from"),
        end_s=_seconds(end, "--to"),
        price_per_kwh=kwh,
        price_per_gpu_hour=gpu_hour,
        currency=currency,
    )
    if wish.start_s is not None and wish.end_s is not None and wish.start_s >= wish.end_s:
        raise CommandError("--from must be before --to")
    if serve is not None:
        if out is not None or as_json:
            raise CommandError("--serve writes no file; omit --out and --json")
        _serve(lambda: gather(Lake(lake), wish, _refused(bootstrap, properties)), serve, refresh)
        return
    with worded():
        made = gather(open_lake(lake), wish, _refused(bootstrap, properties))
    _tell(made, _write(made, out, as_json=as_json), as_json=as_json)


def _prices(
    lake: Path, price_per_kwh: float | None, price_per_gpu_hour: float | None
) -> tuple[float, float]:
    """Return the prices: those of the options, else those stored in the lake."""
    from barnabas.telemetry.lake.prices import stored

    kept = stored(lake)
    return (
        kept.price_per_kwh if price_per_kwh is None else price_per_kwh,
        kept.price_per_gpu_hour if price_per_gpu_hour is None else price_per_gpu_hour,
    )


def _tell(made: "Report", page: Path | None, *, as_json: bool) -> None:
    """Print the summary of the report, and the path of the page."""
    if as_json:
        _print_document(made, page)
    else:
        _print_summary(made)
        say(f"\nThe page is {page}")


def _serve(gather: "Callable[[], Report]", address: str, refresh: str) -> None:
    """Serve the page until Ctrl-C or SIGTERM."""
    import signal
    import threading

    from barnabas.telemetry.report.live import LivePage, LiveServer

    refresh_s = parse_duration_ms(refresh, "--refresh") / 1000
    if refresh_s < 1:
        raise CommandError("--refresh must be 1s or longer")
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise CommandError(f"--serve {address!r} is not an address; write HOST:PORT")
    try:
        server = LiveServer((host, int(port)), LivePage(gather, refresh_s))
    except OSError as error:
        raise CommandError(f"{address} cannot be served: {error.strerror or error}") from error
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        say(f"The page is at http://{host}:{server.server_port}/ until Ctrl-C")
        sys.stdout.flush()
        stop.wait()
        server.shutdown()


def _write(made: "Report", out: Path | None, *, as_json: bool) -> Path | None:
    if out is None and as_json:
        return None
    from barnabas.telemetry.report.report_page import page

    target = out or DEFAULT_PAGE
    if not target.parent.is_dir():
        raise CommandError(
            f"There is no directory {target.parent}; create it, or pass another --out"
        )
    target.write_text(page(made), encoding="utf-8")
    return target


def _print_document(made: "Report", page: Path | None) -> None:
    from barnabas.telemetry.report.summary import document

    print_json({"page": None if page is None else str(page), **document(made)})


def _print_summary(made: "Report") -> None:
    from barnabas.telemetry.report.summary import (
        cost_line,
        finding_rows,
        headline,
        sampling_lines,
    )

    say(headline(made))
    rows = finding_rows(made)
    if rows:
        say("")
        print_table(("FINDING", "GPUS", "EPISODES", "CARD TIME"), rows)
    for line in sampling_lines(made):
        say(line)
    cost = cost_line(made)
    if cost:
        say(f"\n{cost}")
    say("\nDo first:")
    for number, sentence in enumerate(made.advice, 1):
        say(f"  {number}. {sentence.text}")
    sys.stdout.flush()


def _refused(bootstrap: str | None, properties: list[str] | None) -> dict[str, int] | None:
    if bootstrap is None:
        return None
    from barnabas.cli.telemetry.dead_letters import count_refusals

    try:
        counts = count_refusals(bootstrap, properties, REFUSED)
    except AdminError as error:
        # The report works without a broker; say what is missing.
        warn(f"Rejected records are not counted: {error}")
        return None
    return {reason: each.count for reason, each in counts.items()}


def _seconds(text: str | None, option: str) -> float | None:
    return None if text is None else parse_time_ms(text, option) / 1000


def register(app: typer.Typer) -> None:
    """Add the command to `barnabas telemetry`."""
    app.command("report", help=HELP, epilog=EPILOG)(report)
