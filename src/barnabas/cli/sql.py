"""`barnabas sql`: SQL over topics on Spark.

Each command lives in `cli/sql_NAME.py`. None of these modules may import the data stack at its top:
the command that runs loads it, and `needs_extra` says what to install where it is missing.
"""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = ("run", "status")
"""In the order in which --help lists them."""


class FileOrCommand(TyperGroup):
    """Takes `barnabas sql FILE` for `barnabas sql run FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's own click
        """Put the command in where a file is named."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=FileOrCommand, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def sql() -> None:
    """Run files of SQL statements over topics on Spark, and see how far their streams are."""


for name in COMMANDS:
    import_module(f"barnabas.cli.sql_{name}").register(app)
