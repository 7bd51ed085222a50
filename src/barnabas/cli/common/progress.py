"""Show progress on stderr, for work that takes longer than half a second.

On a terminal it is a progress line. Nothing is drawn, and rich is not imported, until half a second
has passed. If stderr is not a terminal, long-running commands print a new line from time to time.
"""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from barnabas.admin.wording import format_duration

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

PATIENCE_S = 0.5


class ProgressLines:
    """Prints a line at intervals if stderr is not a terminal, such as the log of a service."""

    def __init__(self, noun: str, every_s: float) -> None:
        """Take the name of what is counted, and the interval; 0 means never."""
        self._noun = noun
        self._every_s = every_s
        self._enabled = every_s > 0 and not sys.stderr.isatty()
        self._started_s = self._printed_s = time.monotonic()
        self._printed = 0

    def update(self, count: int, note: str = "") -> None:
        """Print the count, and the rate since the last line, if the interval is over."""
        now_s = time.monotonic()
        since_s = now_s - self._printed_s
        if not self._enabled or since_s < self._every_s:
            return
        rate = (count - self._printed) / since_s
        passed = format_duration((now_s - self._started_s) * 1000)
        facts = f"{passed}: {count:,} {self._noun}, {rate:,.0f}/s  {note}"
        sys.stderr.write(f"{facts.rstrip()}\n")
        sys.stderr.flush()
        self._printed_s, self._printed = now_s, count


class Progress:
    """Shows the progress of a command; `total` has the unit of `done`."""

    def __init__(self, noun: str, *, total: int | None = None, enabled: bool = True) -> None:
        self._noun = noun
        self._total = total
        self._enabled = enabled and sys.stderr.isatty()
        self._started_s = time.monotonic()
        self._display: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._display is not None:
            self._display.stop()

    def update(self, done: int, count: int, note: str = "") -> None:
        """Show the current state; `count` is the basis of the rate."""
        if not self._enabled:
            return
        elapsed_s = time.monotonic() - self._started_s
        if elapsed_s < PATIENCE_S:
            return
        if self._display is None:
            self._start()
        assert self._display is not None
        assert self._task is not None
        text = f"{count:,} {self._noun}  {count / elapsed_s:,.0f}/s  {note}"
        self._display.update(self._task, completed=done, description=text)

    def _start(self) -> None:
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        from barnabas.cli.common.output import error_console

        columns = [SpinnerColumn(), TextColumn("{task.description}")]
        extra = [] if self._total is None else [BarColumn(), TimeRemainingColumn()]
        self._display = RichProgress(*columns, *extra, console=error_console(), transient=True)
        self._task = self._display.add_task("", total=self._total)
        self._display.start()
