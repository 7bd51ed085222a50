"""`barnabas queue`: create, fill, empty and look at work queues."""

from dataclasses import asdict
from typing import Annotated

import typer

from barnabas.admin.connecting import pairs, settings
from barnabas.admin.wording import plural
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say
from barnabas.cli.queue import queue_messages as messages
from barnabas.cli.queue.queue_arguments import Group, Name, open_queue

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

app.command(epilog=messages.PUT_EPILOG)(messages.put)
app.command(epilog=messages.TAKE_EPILOG)(messages.take)
app.command(epilog=messages.PEEK_EPILOG)(messages.peek)


@app.command(
    epilog="Example: barnabas queue create jobs --partitions 4 --config retention.ms=604800000"
)
def create(  # noqa: PLR0913 - one parameter an option
    name: Annotated[str, typer.Argument(metavar="QUEUE", help="The name of the new queue.")],
    *,
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
    group_config: Annotated[
        list[str] | None,
        typer.Option("--group-config", metavar="KEY=VALUE", help="A config of the share group."),
    ] = None,
    group: Group = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Succeed if the topic already exists.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Create a queue: a topic, and a share group that begins with the first message."""
    from barnabas.client.queue_creation import create_queue

    is_new = create_queue(
        settings(bootstrap, properties),
        name,
        group or name,
        partitions=partitions,
        replication_factor=replication_factor,
        topic_configs=pairs(config, "--config"),
        group_configs=pairs(group_config, "--group-config"),
        exist_ok=if_not_exists,
    )
    say(f"Created queue {name}" if is_new else f"Topic {name} already exists; it is a queue now")


@app.command(epilog="Example: barnabas queue stats jobs --json | jq .depth")
def stats(
    name: Name,
    group: Group = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Show how many messages are not done, and how many members the group has."""
    with open_queue(name, group, bootstrap, properties) as queue:
        found = queue.stats()
    if as_json:
        print_json(asdict(found))
        return
    say(
        f"Queue {name}  group {found.group}  {found.state}  {plural(found.members, 'member')}  "
        f"{plural(found.depth, 'message')}"
    )
    rows = [(each.partition, each.start, each.end, each.depth) for each in found.partitions]
    print_table(("PARTITION", "START", "END", "DEPTH"), rows)


@app.command(epilog="Example: barnabas queue purge jobs --yes")
def purge(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    group: Group = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Skip all messages that are in the queue now; the group must have no members.

    The records stay in the topic, where other groups can read them.
    """
    from barnabas.admin.groups.share_group_admin import ShareGroupAdmin

    with open_queue(name, group, bootstrap, properties) as queue:
        found = queue.stats()
    question = f"Skip {plural(found.depth, 'message')} of queue {name}, group {found.group}?"
    if yes or typer.confirm(question, err=True):
        ends = {(name, each.partition): each.end for each in found.partitions}
        ShareGroupAdmin(bootstrap, properties).move(found.group, ends)
        say(f"Skipped {plural(found.depth, 'message')} of queue {name}")
