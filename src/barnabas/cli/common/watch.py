"""Refresh a display until Ctrl-C.

On a terminal the display stays in place; in a pipe each one follows the previous one.
"""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.cli.common.output import console

if TYPE_CHECKING:
    from rich.console import RenderableType


def watch(draw: "Callable[[], RenderableType]", interval_s: float) -> None:
    """Show what `draw` returns, at an interval; Ctrl-C ends it without an error."""
    from rich.live import Live

    out = console()
    try:
        if not sys.stdout.isatty():
            every(interval_s, lambda: out.print(draw()))
        with Live(console=out, auto_refresh=False) as live:
            every(interval_s, lambda: live.update(draw(), refresh=True))
    except KeyboardInterrupt:
        return


def every(interval_s: float, act: Callable[[], object]) -> None:
    """Run an action immediately and then at an interval."""
    while True:
        act()
        sys.stdout.flush()
        time.sleep(interval_s)
