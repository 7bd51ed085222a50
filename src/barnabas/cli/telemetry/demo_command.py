"""`barnabas telemetry demo`: run the whole pipeline once on this machine, up to the report.

The order matters, because samples far behind the newest one are late. The times of the recording
are shifted so that it ends directly before the fleet begins (with its own times, the report would
span months without data), and it is processed first. Its tick then advances time to the start of
the fleet, so that the fleet's late samples are late, as in a real fleet.
"""

import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.wording import format_duration
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.output import say

if TYPE_CHECKING:
    from barnabas.cli.telemetry.run_command import RunRequest

HELP = """Run a demonstration: broker, real recording, simulated fleet, tables, findings, report.

It needs only Java. Everything except the report is removed at the end, unless --keep is given.
"""
EPILOG = "Example: barnabas telemetry demo --gpus 256 --out report.html"
STEPS = 6
FLEET_S = 600
CLOSING_MS = 180_000
"""How far the last tick advances time: more than windows wait for late samples and fast clocks."""
GAP_MS = 60_000
"""Between recording and fleet."""
SEED = 4
DIRT_SHARE = 0.01
MESSAGES_A_BATCH = 20_000
"""Several batches for the fleet, so that event time advances and late samples are late."""

Gpus = Annotated[int, typer.Option(min=1, help="Number of GPUs of the simulated fleet.")]
Keep = Annotated[
    bool, typer.Option("--keep", help="Keep topics and tables, and print their location.")
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Where to write the report.")]


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("demo", help=HELP, epilog=EPILOG)(demo)


def demo(*, gpus: Gpus = 64, keep: Keep = False, out: Out = Path("report.html")) -> None:
    """Run the demonstration."""
    if not out.parent.is_dir():
        raise CommandError(f"There is no directory {out.parent}; create it, or pass another --out")
    with needs_extra("telemetry"), ExitStack() as stack:
        from barnabas.telemetry.jobs.spark_session import SessionError, check_java

        try:
            check_java()
        except SessionError as error:
            raise CommandError(str(error)) from error
        stack.enter_context(_ended_by_sigterm())
        folder = stack.enter_context(_folder(keep=keep))
        _Demo(folder, gpus, out, time.monotonic()).play(stack)
        if keep:
            _tell_where(folder)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Clean up at SIGTERM as at Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="barnabas-demo-"))
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)


def _tell_where(folder: Path) -> None:
    lake = shlex.quote(str(folder / "lake"))
    say(f"\nKept in {folder}:")
    say(f"  tables   barnabas telemetry query --lake {lake} --tables")
    say(f"  topics   barnabas serve --data {shlex.quote(str(folder / 'topics'))}")


@dataclass
class _Demo:
    """One demonstration, in its own directory."""

    folder: Path
    gpus: int
    out: Path
    started_s: float
    bootstrap: str = ""
    step: int = 0

    def play(self, stack: ExitStack) -> None:
        """Run all steps; the stack stops everything that was started."""
        from barnabas.cli.telemetry.run_command import supervise
        from barnabas.telemetry.jobs.pipeline_jobs import SESSION
        from barnabas.telemetry.jobs.spark_session import SessionError, session
        from barnabas.testing.process import BrokerSubprocess

        self._say("Starting a broker")
        broker = stack.enter_context(BrokerSubprocess(self.folder / "topics"))
        self.bootstrap = broker.bootstrap
        fleet_ms = (time.time_ns() // 1_000_000) - FLEET_S * 1000 - CLOSING_MS
        self._say("Replaying the recording of one H200 (5 minutes, 10 a second)")
        self._send_recording(fleet_ms)
        request = self._request()
        self._say("Starting Spark, and running the jobs over the recording")
        try:
            with session(request.session, SESSION) as spark:
                signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark put its own there
                supervise(spark, request, stop_on_signals=False)
                self._say(f"Simulating {self.gpus} GPUs for {format_duration(FLEET_S * 1000)}")
                self._send_fleet(fleet_ms)
                self._say("Running the jobs over the fleet")
                supervise(spark, request, stop_on_signals=False)
        except SessionError as error:
            raise CommandError(str(error)) from error
        self._say("Writing the report")
        self._report()

    def _say(self, what: str) -> None:
        self.step += 1
        elapsed = format_duration((time.monotonic() - self.started_s) * 1000)
        say(f"[{self.step}/{STEPS}] {what} ({elapsed})")

    def _send_recording(self, fleet_ms: int) -> None:
        """Send the recording, and a tick that advances time to the start of the fleet."""
        from barnabas.cli.telemetry.collect_command import collect
        from barnabas.telemetry.samples.recording import phases

        spans = phases()
        start_ms = fleet_ms - GAP_MS - (spans[-1].end_ms - spans[0].start_ms)
        collect(
            sample="h200",
            speed="max",
            start=_iso(start_ms),
            tick=f"{GAP_MS // 1000}s",
            bootstrap=self.bootstrap,
        )

    def _send_fleet(self, fleet_ms: int) -> None:
        from barnabas.cli.telemetry.simulate_command import simulate

        simulate(
            gpus=self.gpus,
            duration=f"{FLEET_S}s",
            start=_iso(fleet_ms),
            speed="max",
            seed=SEED,
            dirt=DIRT_SHARE,
            tick=f"{CLOSING_MS // 1000}s",
            bootstrap=self.bootstrap,
        )

    def _request(self) -> "RunRequest":
        from barnabas.cli.telemetry.run_command import SHOW_EVERY_PLAIN_S, SHOW_EVERY_S, RunRequest
        from barnabas.telemetry.jobs.pipeline_jobs import JOBS, JobSettings
        from barnabas.telemetry.jobs.spark_session import SessionSettings

        lake = str(self.folder / "lake")
        scratch = {"spark.local.dir": str(self.folder / "scratch")}
        return RunRequest(
            session=SessionSettings(log=self.folder / "spark.log", conf=scratch, lake=lake),
            jobs=JobSettings(
                bootstrap=self.bootstrap, lake=lake, messages_a_batch=MESSAGES_A_BATCH
            ),
            chosen=JOBS,
            once=True,
            show_every_s=SHOW_EVERY_S if sys.stdout.isatty() else SHOW_EVERY_PLAIN_S,
            as_json=False,
        )

    def _report(self) -> None:
        from barnabas.cli.telemetry.report_command import report

        report(lake=self.folder / "lake", out=self.out, bootstrap=self.bootstrap)


def _iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()
