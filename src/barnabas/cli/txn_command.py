"""`barnabas txn`: list and describe transactions, and abort hanging ones."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.connecting import settings
from barnabas.admin.scopes import expand, parse_scope
from barnabas.admin.wording import format_duration, plural
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from barnabas.admin.scopes import Place
    from barnabas.admin.transaction_admin import Transactions
    from barnabas.wire.cluster_wire import Wire

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

ABORT_HELP = """Abort an open transaction.

By its TRANSACTIONAL_ID: the coordinator aborts it everywhere, and its producer is fenced.

By TOPIC:PARTITION and --start-offset: an abort marker is written to that partition, without the
coordinator. This is for transactions that `barnabas txn hanging` finds: for an active producer
it would split its transaction in two.
"""


class State(StrEnum):
    """The states of a transactional id, with Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


@app.command("list", epilog="Example: barnabas txn list --state Ongoing")
def list_transactions(
    states: Annotated[
        list[State] | None,
        typer.Option(
            "--state", case_sensitive=False, help="Only ids in this state; may be repeated."
        ),
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List transactional ids."""
    from barnabas.admin.transaction_admin import Transactions

    with _wire(bootstrap, properties) as wire:
        found = Transactions(wire).all([each.value for each in states or ()])
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = [
        (each.transactional_id, each.coordinator, each.producer_id, each.state) for each in found
    ]
    print_table(("TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE"), rows)


@app.command(epilog="Example: barnabas txn describe billing-1")
def describe(
    transactional_id: Annotated[
        str, typer.Argument(metavar="TRANSACTIONAL_ID", help="The transactional id.")
    ],
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Show the state of a transactional id, and the partitions of its transaction."""
    from barnabas.admin.transaction_admin import Transactions

    with _wire(bootstrap, properties) as wire:
        found = Transactions(wire).describe(transactional_id)
    if found is None:
        raise _no_transaction(transactional_id)
    if as_json:
        print_json(found.as_json())
        return
    say(
        f"Transactional id {found.transactional_id}  {found.state}  coordinator {found.coordinator}"
    )
    say(f"  producer id {found.producer_id}  epoch {found.producer_epoch}")
    say(f"  timeout {format_duration(found.timeout_ms)}")
    if found.started_ms is not None:
        age = format_duration(max(0, _now_ms() - found.started_ms))
        say(f"  open since {_moment(found.started_ms)}, for {age}")
    for topic, number in found.partitions:
        say(f"  {topic}:{number}")


@app.command(
    help=ABORT_HELP,
    epilog="Example: barnabas txn abort billing-1 ; barnabas txn abort orders:0 --start-offset 42",
)
def abort(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TRANSACTIONAL_ID|TOPIC:PARTITION",
            help="A transactional id, or the partition where it is open.",
        ),
    ],
    start_offset: Annotated[
        int | None,
        typer.Option(min=0, help="The first offset of the transaction in the partition."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Abort an open transaction."""
    from barnabas.admin.transaction_admin import Transactions

    with _wire(bootstrap, properties) as wire:
        transactions = Transactions(wire)
        if start_offset is None:
            _abort_everywhere(transactions, target)
        else:
            _abort_on_partition(transactions, target, start_offset)


@app.command(epilog="Example: barnabas txn hanging --topic orders --older-than 1h")
def hanging(
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC[:PARTITIONS]",
            help="Only this topic or partitions; may be repeated.",
        ),
    ] = None,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="The limit for transactions whose own timeout is unknown; "
            "use transaction.max.timeout.ms of the brokers.",
        ),
    ] = "15m",
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Find transactions that are open for too long and block read_committed consumers."""
    from barnabas.admin.transaction_admin import Transactions

    patience_ms = parse_duration_ms(older_than, "--older-than")
    with _wire(bootstrap, properties) as wire:
        places = _places(wire, scopes) if scopes else None
        found = Transactions(wire).hanging(places, _now_ms(), patience_ms)
    if as_json:
        print_json([each.as_json() for each in found])
        return
    if not found:
        say("No hanging transactions")
        return
    rows = [
        (
            f"{each.open.topic}:{each.open.partition}",
            each.open.start_offset,
            each.open.producer_id,
            each.transactional_id,
            format_duration(each.idle_ms),
            each.reason,
        )
        for each in found
    ]
    print_table(("PARTITION", "START", "PRODUCER ID", "TRANSACTIONAL ID", "IDLE", "WHY"), rows)
    for each in found:
        say(f"  barnabas txn abort {each.remedy}")


def _wire(bootstrap: str, properties: list[str] | None) -> "Wire":
    from barnabas.wire.cluster_wire import Wire

    return Wire(settings(bootstrap, properties), "barnabas-cli")


def _abort_everywhere(transactions: "Transactions", transactional_id: str) -> None:
    from barnabas.admin.transaction_admin import ENDING, ONGOING

    found = transactions.describe(transactional_id)
    if found is None:
        raise _no_transaction(transactional_id)
    if found.state in ENDING:
        raise CommandError(
            f"The transaction of {transactional_id} is completing ({found.state}); "
            "wait for it, or look for what holds it up with `barnabas txn hanging`"
        )
    if found.state != ONGOING:
        raise CommandError(
            f"{transactional_id} has no open transaction ({found.state}); "
            "`barnabas txn list --state Ongoing` lists open ones"
        )
    transactions.fence(found)
    say(
        f"Aborted the transaction of {transactional_id} on "
        f"{plural(len(found.partitions), 'partition')}, and fenced its producer"
    )


def _abort_on_partition(transactions: "Transactions", target: str, start_offset: int) -> None:
    topic, numbers = parse_scope(target, "TOPIC:PARTITION")
    if numbers is None or len(numbers) != 1:
        raise CommandError(f"{target!r} is not one partition; with --start-offset write orders:0")
    place = (topic, numbers[0])
    opened = transactions.open_on([place])
    found = next((each for each in opened if each.start_offset == start_offset), None)
    if found is None:
        starts = ", ".join(str(each.start_offset) for each in opened)
        there = f"open transactions begin at {starts}" if starts else "no transaction is open there"
        raise CommandError(f"No open transaction of {target} begins at {start_offset}; {there}")
    transactions.end_on(found)
    say(f"Aborted the transaction of producer {found.producer_id} on {target}")


def _places(wire: "Wire", scopes: list[str]) -> "list[Place]":
    counts = {each.name or "": len(each.partitions) for each in wire.metadata().topics}
    return expand([parse_scope(scope, "--topic") for scope in scopes], counts)


def _no_transaction(transactional_id: str) -> CommandError:
    return CommandError(
        f"No coordinator knows the transactional id {transactional_id}; "
        "`barnabas txn list` lists all"
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _moment(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
