"""Runs `barnabas top`: draws each new state and each key, until the user quits."""

import sys
import time
from contextlib import ExitStack

from rich.console import Console
from rich.live import Live
from rich.text import Text

from barnabas.monitor.states import ClusterState
from barnabas.monitor.watcher import Watcher
from barnabas.top.top_frame import Canvas, frame
from barnabas.top.top_terminal import Keyboard, raw_keys, signals_of
from barnabas.top.top_view import View, press

REDRAW_S = 1.0
"""The age of the values is drawn anew this often."""
FRAME_COLUMNS, FRAME_LINES = 80, 24
"""The size of a frame where there is no terminal."""


def show(watcher: Watcher, console: Console) -> None:
    """Show the live view until a key or a signal ends it; the terminal is as before then."""
    with ExitStack() as stack:
        if sys.stdin.isatty():
            keyboard = stack.enter_context(raw_keys(sys.stdin.fileno()))
        else:
            keyboard = Keyboard(None)
            stack.callback(keyboard.close)
        stack.callback(watcher.subscribe(lambda _: keyboard.wake()))
        stack.enter_context(signals_of(keyboard))
        live = Live(console=console, screen=True, auto_refresh=False)
        stack.enter_context(live)
        _loop(watcher, keyboard, live)


def _loop(watcher: Watcher, keyboard: Keyboard, live: Live) -> None:
    view, shown = View(), watcher.state
    while not view.is_over and not keyboard.is_over:
        if not view.is_paused:
            shown = watcher.state
        live.update(_frame(live.console, shown, view, watcher.failure), refresh=True)
        for key in keyboard.wait(REDRAW_S):
            view = press(view, key, shown)


def once(watcher: Watcher, console: Console) -> None:
    """Print one frame, after two collections, so that it has rates."""
    state = watcher.wait(patience_s(watcher), after=1)
    console.print(_frame(console, state, View(), watcher.failure), no_wrap=True, crop=False)


def patience_s(watcher: Watcher) -> float:
    """Return how long two collections may take."""
    settings = watcher.settings
    return 2 * settings.interval_s + 10 * settings.answer_timeout_s


def _frame(console: Console, state: ClusterState | None, view: View, failure: str | None) -> Text:
    width, height = console.size if console.is_terminal else (FRAME_COLUMNS, FRAME_LINES)
    canvas = Canvas(
        width=width,
        height=height,
        now_ms=time.time_ns() // 1_000_000,
        is_plain=not console.encoding.lower().startswith("utf"),
    )
    return frame(state, view, canvas, failure or "")
