"""The terminal output of a run: a progress bar, the current row, and a line for each finished
row.
"""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bench.metrics import METRICS
from bench.report import number
from bench.results import Sample


class Display:
    """A watcher that draws on a console."""

    def __init__(self, console: Console, steps: int) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=console,
        )
        self._task = self._progress.add_task("starting", total=steps)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def begin(self, what: str) -> None:
        """Show the current row."""
        self._progress.update(self._task, description=what)

    def done(self, sample: Sample) -> None:
        """Print a permanent line, and advance the bar by one step."""
        self.show(sample)
        self.step()

    def show(self, sample: Sample) -> None:
        """Print a permanent line."""
        style = "red" if sample.error else "default"
        self._progress.console.print(describe(sample), style=style, highlight=False, markup=False)

    def step(self) -> None:
        """Advance the bar by one step."""
        self._progress.advance(self._task)


def describe(sample: Sample) -> str:
    """`1  kafka     produce-1k   120 MB/s ...`."""
    figures = [
        metric.short.format(number(sample.figures[key]))
        for key, metric in METRICS.items()
        if key in sample.figures
    ]
    if sample.error:
        figures.append(f"failed: {sample.error}")
    return f"{sample.round}  {sample.broker:<9} {sample.row:<26} {' · '.join(figures)}"
