"""`barnabas topic`: create, list, describe, alter and delete topics."""

from typing import Annotated

import typer

from barnabas.admin.admin_errors import AdminError, no_topic
from barnabas.admin.connecting import pairs
from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    Properties,
    complete_topic,
)
from barnabas.cli.common.output import print_json, print_table, say

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

NewName = Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the new topic.")]
Name = Annotated[
    str,
    typer.Argument(metavar="TOPIC", help="The name of the topic.", autocompletion=complete_topic),
]
Names = Annotated[
    list[str],
    typer.Argument(metavar="TOPIC...", help="One or more topics.", autocompletion=complete_topic),
]


@app.command(
    epilog="Example: barnabas topic create orders --partitions 6 --config retention.ms=86400000"
)
def create(
    name: NewName,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Number of partitions; default: the broker's.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="Replication factor; default: the broker's.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "-c", metavar="KEY=VALUE", help="A config of the topic."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Succeed if the topic already exists.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Create a topic."""
    from barnabas.admin.topic_admin import TOPIC_EXISTS, Cluster, is_error

    values = pairs(config, "--config")
    cluster = Cluster(bootstrap, properties)
    try:
        cluster.create(name, partitions=partitions, replicas=replication_factor, config=values)
    except AdminError as error:
        if not is_error(error, TOPIC_EXISTS):
            raise
        if not if_not_exists:
            raise CommandError(
                f"Topic {name} already exists; choose another name or pass --if-not-exists"
            ) from error
        say(f"Topic {name} already exists")
    else:
        say(f"Created topic {name}")


@app.command("list", epilog="Example: barnabas topic list --json | jq -r '.[].name'")
def list_topics(
    all_topics: Annotated[
        bool, typer.Option("--all", "-a", help="Include internal topics.")
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List the topics."""
    from barnabas.admin.topic_admin import Cluster

    topics = Cluster(bootstrap, properties).topics()
    rows = [
        (name, partitions, replicas)
        for name, (partitions, replicas) in topics.items()
        if all_topics or not name.startswith("__")
    ]
    if as_json:
        titles = ("name", "partitions", "replication_factor")
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
    else:
        print_table(("TOPIC", "PARTITIONS", "REPLICAS"), rows)


@app.command(epilog="Example: barnabas topic describe orders")
def describe(
    names: Names,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Show partitions, leaders, in-sync replicas, offsets, and changed settings."""
    from barnabas.admin.topic_admin import Cluster, Topic

    def show(topic: Topic) -> None:
        say(
            f"Topic {topic.name}  id {topic.topic_id}  {plural(len(topic.partitions), 'partition')}"
        )
        rows = [
            (
                each.id,
                each.leader,
                ",".join(map(str, each.replicas)),
                ",".join(map(str, each.isr)),
                each.earliest,
                each.latest,
            )
            for each in topic.partitions
        ]
        print_table(("PARTITION", "LEADER", "REPLICAS", "IN SYNC", "EARLIEST", "LATEST"), rows)
        for config in topic.configs:
            say(f"  {config.name} = {config.value}  ({config.source})")

    cluster = Cluster(bootstrap, properties)
    topics = [cluster.describe(name) for name in names]
    if as_json:
        print_json([topic.as_json() for topic in topics])
        return
    for topic in topics:
        show(topic)


@app.command(epilog="Example: barnabas topic alter orders --partitions 12 --unset retention.ms")
def alter(
    name: Name,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="The new total number; it can only increase.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "-c", metavar="KEY=VALUE", help="Set this config."),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Reset this config to its default.")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Add partitions, set and reset configs."""
    from barnabas.admin.topic_admin import Cluster

    values = pairs(config, "--config")
    if partitions is None and not values and not unset:
        raise CommandError("Nothing to alter; pass --partitions, --config or --unset")
    cluster = Cluster(bootstrap, properties)
    there = cluster.topics().get(name)
    if there is None:
        raise no_topic(name)
    if partitions is not None and partitions < there[0]:
        raise CommandError(
            f"Topic {name} has {plural(there[0], 'partition')} and cannot shrink; "
            f"pass --partitions {there[0]} or more"
        )
    if values or unset:
        cluster.change("topic", name, values, unset or ())
    if partitions is not None and partitions > there[0]:
        cluster.grow(name, partitions)
    say(f"Altered topic {name}")


@app.command(epilog="Example: barnabas topic delete orders --yes")
def delete(
    names: Names,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Succeed if the topic does not exist.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Delete topics with all their records."""
    from barnabas.admin.topic_admin import Cluster

    cluster = Cluster(bootstrap, properties)
    there = cluster.topics()
    missing = [name for name in names if name not in there]
    if missing and not if_exists:
        raise no_topic(missing[0])
    for name in names:
        if name in missing:
            say(f"There is no topic {name}")
        elif yes or typer.confirm(f"Delete topic {name} and all its records?", err=True):
            cluster.delete(name)
            say(f"Deleted topic {name}")
