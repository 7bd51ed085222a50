"""`barnabas`: finds the command that was asked for, and loads that one alone.

Starting fast matters most for `serve`, which is therefore dispatched before anything else is
imported. For the others the command line is looked at once: the module of the command it
names is imported, the rest are listed by the table below and stay unloaded.
"""

import os
import shlex
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import typer


class Entry(NamedTuple):
    """One command, or one group of them."""

    help: str
    is_group: bool = False


# Single commands are functions, groups are Typer apps called `app`, each in `cli/NAME.py`.
COMMANDS = {
    "serve": Entry("Run a broker."),
    "cluster": Entry(
        "Start a local cluster, see how one is, add and remove brokers.", is_group=True
    ),
    "partition": Entry(
        "Move the copies of partitions, even them out, elect leaders.", is_group=True
    ),
    "topic": Entry("Create, list, describe, alter and delete topics.", is_group=True),
    "config": Entry("Read and change the settings of topics and brokers.", is_group=True),
    "produce": Entry("Send records from standard input or files."),
    "consume": Entry("Print records, from anywhere in a topic, once or for ever."),
    "group": Entry("List, describe, reset and delete consumer groups.", is_group=True),
    "txn": Entry("List and describe transactions, and abort those that hang.", is_group=True),
    "log": Entry("Look into segment files on disk, and check them.", is_group=True),
    "telemetry": Entry("Collect GPU telemetry, find what it says, and see it.", is_group=True),
    "sql": Entry("Run SQL over topics on Spark, as streams or at once.", is_group=True),
    "bench": Entry("Measure how fast a broker is.", is_group=True),
}
VERSION_FLAGS = {"--version", "-V"}


def main(arguments: "Sequence[str] | None" = None) -> None:
    """Run the command line and leave with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["serve"]:
        from barnabas.cli import serve

        sys.exit(serve.main(words[1:]))
    if words[:1] and words[0] in VERSION_FLAGS:
        from barnabas import __version__

        sys.stdout.write(f"barnabas {__version__}\n")
        return
    from barnabas.cli.failure import reported

    with reported():
        _application(_asked_for(words))(words, prog_name="barnabas")


def _asked_for(words: "Sequence[str]") -> str | None:
    """Return the command named on the line, or on the line that a shell wants completed."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS")
    if line and "_BARNABAS_COMPLETE" in os.environ:
        words = _split(line)[1:]
    return next((word for word in words if not word.startswith("-")), None)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quotation mark that is still open
        return line.split()


def _application(asked_for: str | None) -> "typer.Typer":
    import typer

    application = typer.Typer(
        help="A message queue that any Kafka client can use, and tools for any Kafka.",
        epilog="Every command has its own --help, with an example.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    # Without a callback Typer takes an application of one command to be that command.
    application.callback()(_root)
    for name, entry in COMMANDS.items():
        if name == asked_for and name != "serve":  # which parses its own options
            _add(application, name, entry)
        else:
            application.command(name, help=entry.help)(_placeholder)
    return application


def _add(application: "typer.Typer", name: str, entry: Entry) -> None:
    module = import_module(f"barnabas.cli.{name}")
    if entry.is_group:
        application.add_typer(module.app, name=name, help=entry.help)
        return
    command: Callable[..., object] = getattr(module, name)
    application.command(name, help=module.HELP, epilog=module.EPILOG)(command)


def _root() -> None:
    pass


def _placeholder() -> None:
    pass
