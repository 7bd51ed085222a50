"""Adds the option for a file of client properties to every command that talks to brokers.

A command that has `bootstrap` and `properties` among its parameters gets `--config FILE`. If
`--config` has another meaning (`topic create`), the option is `--client-config FILE` only. `-X`
overrides properties of the file; its bootstrap.servers are used if --bootstrap is not given.
"""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    import typer

VARIABLE = "BARNABAS_CLIENT_CONFIG"
PARAMETER, CONTEXT = "client_config", "client_config_context"
Command = Callable[..., Any]


def add_to_application(application: "typer.Typer") -> None:
    """Add the option to the commands of an application and of its groups."""
    for registered in application.registered_commands:
        if registered.callback is not None:
            registered.callback = with_client_config(registered.callback)
    for group in application.registered_groups:
        if group.typer_instance is not None:
            add_to_application(group.typer_instance)


def with_client_config(command: Command) -> Command:
    """Return a command with the option, if it connects to brokers."""
    import typer

    signature = inspect.signature(command)
    names = signature.parameters
    if not {"bootstrap", "properties"} <= names.keys() or PARAMETER in names:
        return command
    flags = ["--client-config"] if "config" in names else ["--config", "--client-config"]
    option = typer.Option(
        *flags,
        envvar=VARIABLE,
        metavar="FILE",
        help="File of client properties (librdkafka's or Java's names), as for TLS and SASL.",
    )
    annotation = Annotated[Path | None, option]
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter(PARAMETER, keyword, default=None, annotation=annotation),
        inspect.Parameter(CONTEXT, keyword, annotation=typer.Context),
    ]

    @functools.wraps(command)
    def with_file(*arguments: Any, **values: Any) -> Any:  # noqa: ANN401 - as the command has them
        file: Path | None = values.pop(PARAMETER, None)
        context: typer.Context = values.pop(CONTEXT)
        if file is not None:
            merge_file(file, values, context)
        return command(*arguments, **values)

    with_file.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*names.values(), *added]
    )
    with_file.__annotations__ = {
        **command.__annotations__,
        **{each.name: each.annotation for each in added},
    }
    return with_file


def merge_file(file: Path, values: dict[str, Any], context: "typer.Context") -> None:
    """Put a file's properties before those of the command line."""
    from barnabas.admin.client_files import read_client_file

    found = read_client_file(file)
    bootstrap = found.pop("bootstrap.servers", None)
    source = context.get_parameter_source("bootstrap")
    if bootstrap is not None and source is not None and source.name == "DEFAULT":
        values["bootstrap"] = bootstrap
    given = [f"{key}={value}" for key, value in found.items()]
    values["properties"] = [*given, *(values.get("properties") or ())]
