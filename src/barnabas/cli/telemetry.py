"""`barnabas telemetry`: GPU telemetry from the cards to the report.

Each command lives in `cli/telemetry_NAME.py`, which has a function `register(app)`; a new one is
one more word in `COMMANDS`. None of these modules may import the data stack at its top: it is
loaded by the command that runs, and `needs_extra` says what to install where it is missing.
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
    """Collect GPU telemetry, find what it says, and see it."""


for name in COMMANDS:
    import_module(f"barnabas.cli.telemetry_{name}").register(app)
