"""The options that the commands of `barnabas queue` share."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from barnabas.admin.connecting import settings
from barnabas.cli.common.options import complete_topic

if TYPE_CHECKING:
    from barnabas.client import Queue
    from barnabas.client.client_settings import Settings

Name = Annotated[
    str,
    typer.Argument(metavar="QUEUE", help="The topic.", autocompletion=complete_topic),
]
Group = Annotated[
    str | None,
    typer.Option("--group", "-g", help="The share group; default: the name of the queue."),
]


def open_queue(
    name: str, group: str | None, bootstrap: str, properties: list[str] | None, prefetch: int = 1
) -> "Queue":
    """Return the queue; it connects on first use."""
    from barnabas.client import Queue

    return Queue(
        name,
        bootstrap,
        group=group,
        prefetch=prefetch,
        settings=client_settings(bootstrap, properties),
    )


def client_settings(bootstrap: str, properties: list[str] | None) -> "Settings":
    """Return librdkafka's properties as the client takes them."""
    return cast("Settings", settings(bootstrap, properties))
