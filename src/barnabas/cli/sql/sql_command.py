"""`barnabas sql`: the group of commands for SQL on topics with Spark.

Each command is in `cli/sql/sql_NAME_command.py`. These modules must not import Spark at the top:
the command imports it when it runs, and `needs_extra` says what to install if it is missing.
"""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = ("run", "status")
"""In the order in which --help lists them."""


class FileOrCommand(TyperGroup):
    """Treats `barnabas sql FILE` as `barnabas sql run FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's own click
        """Insert `run` if the first argument is a file."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=FileOrCommand, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def sql() -> None:
    """Run files of SQL statements on topics with Spark, and show the progress of their streams."""


for name in COMMANDS:
    import_module(f"barnabas.cli.sql.sql_{name}_command").register(app)
