"""A picture that is drawn again and again until Ctrl-C.

On a terminal it stays in place; in a pipe each picture follows the one before.
"""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.cli.output import console

if TYPE_CHECKING:
    from rich.console import RenderableType


def watch(draw: "Callable[[], RenderableType]", interval_s: float) -> None:
    """Show what `draw` returns, every so many seconds; Ctrl-C is how it ends, and no error."""
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
    """Act at once and then every so many seconds, for ever."""
    while True:
        act()
        sys.stdout.flush()
        time.sleep(interval_s)
