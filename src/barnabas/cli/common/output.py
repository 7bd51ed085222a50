"""Print results on stdout: tables for people, JSON for scripts.

rich is imported only when a table is drawn.
"""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# A pipe has no width; names must not be truncated for programs that read them.
PIPE_COLUMNS = 100_000


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def print_json(value: object) -> None:
    """Print one JSON document, indented on a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    say(json.dumps(value, indent=indent, ensure_ascii=False))


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers are right-aligned."""
    console().print(table(titles, rows))


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> "Table":
    """Return a table; numbers are right-aligned, unknown values are a dash."""
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
    """Return a console on stdout that does not interpret markup or colours in data."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_COLUMNS
    return Console(width=width, markup=False, highlight=False, soft_wrap=not sys.stdout.isatty())


def error_console() -> "Console":
    """Return a console on stderr, for progress."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False)
