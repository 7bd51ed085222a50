"""`barnabas telemetry`: the group of commands for GPU telemetry.

Each command is in `cli/telemetry/NAME_command.py`, with a function `register(app)`; to add one, add
its name to `COMMANDS`. These modules must not import Spark and Arrow at the top: the command
imports them when it runs, and `needs_extra` says what to install if they are missing.
"""

from importlib import import_module

import typer

COMMANDS = (
    "collect",
    "simulate",
    "run",
    "evaluate",
    "report",
    "query",
    "retain",
    "notify",
    "silence",
    "dlq",
    "package",
    "demo",
)
"""In the order in which --help lists them."""

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def telemetry() -> None:
    """Collect GPU telemetry, find problems and costs, and show reports."""


for name in COMMANDS:
    import_module(f"barnabas.cli.telemetry.{name}_command").register(app)
