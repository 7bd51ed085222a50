"""How results are shown: tables for people, JSON for scripts; both on stdout.

rich is loaded only where something is drawn.
"""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# A pipe has no width; names must not be cut because a program reads them.
PIPE_COLUMNS = 100_000


def say(text: str) -> None:
    """Print a line for whoever asked."""
    sys.stdout.write(f"{text}\n")


def print_json(value: object) -> None:
    """Print one JSON document, indented where a person looks at it."""
    indent = 2 if sys.stdout.isatty() else None
    say(json.dumps(value, indent=indent, ensure_ascii=False))


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns; numbers to the right."""
    console().print(table(titles, rows))


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> "Table":
    """Return columns to print; numbers to the right, a dash for what is not known."""
    from rich.table import Table

    columns = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, title in enumerate(titles):
        cells = [row[index] for row in rows if row[index] is not None]
        numeric = bool(cells) and all(isinstance(cell, int) for cell in cells)
        columns.add_column(title, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        columns.add_row(*("-" if cell is None else str(cell) for cell in row))
    return columns


def console() -> "Console":
    """Return a console on stdout that never guesses markup or colours in data."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_COLUMNS
    return Console(width=width, markup=False, highlight=False, soft_wrap=not sys.stdout.isatty())


def error_console() -> "Console":
    """Return a console on stderr, for progress."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
