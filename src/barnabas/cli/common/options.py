"""Command-line options that several commands share."""

from typing import Annotated

import typer

from barnabas.admin.connecting import require_listener, settings

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
COMPLETION_TIMEOUT_S = 0.2

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="BARNABAS_BOOTSTRAP",
        metavar="HOST:PORT",
        help="Address of a broker.",
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "-X",
        metavar="KEY=VALUE",
        help="Any property of librdkafka; may be repeated.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def complete_topic(context: typer.Context, incomplete: str) -> list[str]:
    """Complete topic names in the shell, if a broker answers quickly."""
    bootstrap = context.params.get("bootstrap") or DEFAULT_BOOTSTRAP
    try:
        require_listener(bootstrap, COMPLETION_TIMEOUT_S)
        from confluent_kafka.admin import AdminClient

        client = AdminClient(settings(bootstrap, context.params.get("properties")))
        names = client.list_topics(timeout=COMPLETION_TIMEOUT_S).topics
    except Exception:  # noqa: BLE001 - completion must not print errors
        return []
    return sorted(name for name in names if name.startswith(incomplete))
