"""The entry point of `barnabas`: finds the command and imports only its module.

`serve` must start fast, so it is dispatched before anything else is imported. For other commands,
the module of the named command is imported; the table below lists the others for --help.
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
    """One command, or one group of commands."""

    help: str
    module: str
    """The module within `barnabas.cli`, with a Typer app `app` or a function of that name."""
    is_group: bool = True


COMMANDS = {
    "serve": Entry("Run a broker.", "serve", is_group=False),
    "cluster": Entry(
        "Start a local cluster, show the state of a cluster, add and remove brokers.",
        "cluster.cluster_command",
    ),
    "partition": Entry(
        "Move and balance the replicas of partitions, elect leaders.",
        "partition.partition_command",
    ),
    "topic": Entry("Create, list, describe, alter and delete topics.", "topic_command"),
    "config": Entry("Read and change the settings of topics and brokers.", "config_command"),
    "produce": Entry(
        "Send records from standard input or files.", "records.produce_command", is_group=False
    ),
    "consume": Entry(
        "Print records, from any position of a topic, once or continuously.",
        "records.consume_command",
        is_group=False,
    ),
    "queue": Entry("Create, fill, empty and look at work queues.", "queue.queue_command"),
    "group": Entry(
        "List, describe, reset and delete consumer groups and share groups.", "group.group_command"
    ),
    "acl": Entry("Allow and deny, and explain who may do what.", "acl.acl_command"),
    "role": Entry("Give principals roles, which ACLs can name.", "acl.role_command"),
    "user": Entry("Create, list and delete users, and change their passwords.", "user_command"),
    "token": Entry(
        "Create, list, renew and expire delegation tokens, which log clients in for a while.",
        "token_command",
    ),
    "console": Entry(
        "Serve the web console: a page for the cluster, its records and its groups.",
        "console.console_command",
    ),
    "txn": Entry("List and describe transactions, and abort hanging ones.", "txn_command"),
    "quota": Entry(
        "Limit how much users, client ids and addresses may take.", "quota.quota_command"
    ),
    "probe": Entry(
        "Ask a broker for its health over HTTP; the exit code is the answer.",
        "probe_command",
        is_group=False,
    ),
    "log": Entry("Print and check segment files on disk.", "log.log_command"),
    "telemetry": Entry(
        "Collect GPU telemetry, find problems and costs, and show reports.",
        "telemetry.telemetry_command",
    ),
    "sql": Entry("Run SQL on topics with Spark, as streams or once.", "sql.sql_command"),
    "exporter": Entry(
        "Serve metrics of a cluster and its groups to Prometheus.",
        "exporter_command",
        is_group=False,
    ),
    "top": Entry("Show a live view of a cluster.", "top_command", is_group=False),
    "cert": Entry(
        "Make certificates for a test cluster, and show what is in one.", "cert.cert_command"
    ),
    "bench": Entry("Measure the performance of a broker.", "bench.bench_command"),
}
VERSION_FLAGS = {"--version", "-V"}


def main(arguments: "Sequence[str] | None" = None) -> None:
    """Run the command line and exit with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["serve"]:
        from barnabas.cli import serve

        sys.exit(serve.main(words[1:]))
    if words[:1] and words[0] in VERSION_FLAGS:
        from barnabas import __version__

        sys.stdout.write(f"barnabas {__version__}\n")
        return
    from barnabas.cli.common.failure import reported

    with reported():
        _application(_asked_for(words))(words, prog_name="barnabas")


def _asked_for(words: "Sequence[str]") -> str | None:
    """Return the command in the arguments, or in the line that the shell wants to complete."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS")
    if line and "_BARNABAS_COMPLETE" in os.environ:
        words = _split(line)[1:]
    return next((word for word in words if not word.startswith("-")), None)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # an unclosed quotation mark
        return line.split()


def _application(asked_for: str | None) -> "typer.Typer":
    import typer

    application = typer.Typer(
        help="A message queue for any Kafka client, and tools for any Kafka cluster.",
        epilog="Every command has its own --help, with an example.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    # Without a callback Typer treats an application with one command as that command.
    application.callback()(_root)
    for name, entry in COMMANDS.items():
        if name == asked_for and name != "serve":  # which parses its own options
            _add(application, name, entry)
        else:
            application.command(name, help=entry.help)(_placeholder)
    return application


def _add(application: "typer.Typer", name: str, entry: Entry) -> None:
    module = import_module(f"barnabas.cli.{entry.module}")
    from barnabas.cli.common.client_config import add_to_application, with_client_config

    if entry.is_group:
        add_to_application(module.app)
        text = getattr(module, "GROUP_HELP", entry.help)
        example = getattr(module, "GROUP_EPILOG", None)
        application.add_typer(module.app, name=name, help=text, epilog=example)
        return
    command: Callable[..., object] = getattr(module, name)
    application.command(name, help=module.HELP, epilog=module.EPILOG)(with_client_config(command))


def _root() -> None:
    pass


def _placeholder() -> None:
    pass
