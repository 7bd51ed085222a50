"""`barnabas telemetry dlq`: list rejected messages and send them again."""

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say
from barnabas.telemetry.samples.telemetry_topics import REFUSED

if TYPE_CHECKING:
    from barnabas.admin.groups.group_admin import Groups
    from barnabas.cli.telemetry.dead_letters import Refusals
    from barnabas.telemetry.jobs.redrive import Choice, Plan, Refusal, Tally

dlq = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

HELP = "List messages that the pipeline rejected, and send them again once the cause is fixed."
LOT = 2_000
LOT_BYTES = 64 << 20
PREVIEW_LETTERS = 120

Reason = Annotated[
    str | None, typer.Option("--reason", "-r", help="Only records with this reason.")
]
Topic = Annotated[str, typer.Option("--topic", help="The dead-letter topic.")]


@dlq.command(
    "list", epilog="Example: barnabas telemetry dlq list --reason bad-json --limit 3 --json"
)
def list_refusals(
    reason: Reason = None,
    limit: Annotated[int, typer.Option(min=0, help="Number of newest records to show.")] = 5,
    topic: Topic = REFUSED,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Count rejected messages by reason, and show the newest."""
    from barnabas.cli.telemetry.dead_letters import Refusals
    from barnabas.telemetry.jobs.redrive import tally

    refusals = Refusals(bootstrap, properties, topic)
    counts: dict[str, Tally] = {}
    newest: dict[int, deque[Refusal]] = {
        partition: deque(maxlen=limit) for partition in refusals.partitions
    }
    try:
        for batch in refusals.read():
            wanted = [each for each in batch if reason is None or reason in each.reasons]
            tally(wanted, counts)
            for each in wanted:
                newest[each.partition].append(each)
    finally:
        refusals.close()
    ordered = sorted(counts.values(), key=lambda each: -each.count)
    shown = _latest([each for kept in newest.values() for each in kept], limit)
    if as_json:
        document = {
            "topic": topic,
            "reasons": [_counted(each) for each in ordered],
            "records": [_told(each) for each in shown],
        }
        print_json(document)
    else:
        _show(topic, ordered, shown)


@dlq.command(
    epilog="Example: barnabas telemetry dlq redrive --reason late --execute ; "
    "barnabas telemetry dlq redrive --partition 0 --offset 42 --execute"
)
def redrive(  # noqa: PLR0913 - one parameter an option
    *,
    reason: Reason = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Only this partition of the dead-letter topic.")
    ] = None,
    offset: Annotated[
        int | None, typer.Option(min=0, help="Only this record; needs --partition.")
    ] = None,
    execute: Annotated[
        bool,
        typer.Option("--execute/--dry-run", help="Send the records; without it, only show them."),
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Include records that were redriven before, however often."),
    ] = False,
    times_max: Annotated[
        int, typer.Option(min=1, help="Skip records that were rejected this often.")
    ] = 3,
    topic: Topic = REFUSED,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Send rejected records back to their topic; a dry run without --execute.

    Key, value and partition are the original ones; header dlq.redriven counts the attempts. A
    committed offset marks what was sent, so that a second run does not repeat it. A record named
    by --offset is not marked, and a later run may send it again.
    """
    from barnabas.admin.groups.group_admin import Groups
    from barnabas.cli.telemetry.dead_letters import Refusals, commits, learn
    from barnabas.telemetry.jobs.redrive import GROUP, Choice, Plan

    if offset is not None and partition is None:
        raise CommandError("--offset needs --partition as well")
    refusals = Refusals(bootstrap, properties, topic)
    groups = Groups(bootstrap, properties)
    choice = Choice(reason, partition, offset, times_max, force)
    plan = Plan(choice, commits(groups, GROUP, topic))
    if reason is not None:
        learn(plan, groups, topic, {reason})
    try:
        sent = _redrive(refusals, groups, plan, execute=execute)
    finally:
        refusals.close()
    _conclude(plan, sent, execute=execute, as_json=as_json)


def _redrive(refusals: "Refusals", groups: "Groups", plan: "Plan", *, execute: bool) -> int:
    """Process the dead-letter topic in batches; commit a batch once all of it is sent."""
    from barnabas.cli.telemetry.dead_letters import learn

    sent = 0
    lot: list[Refusal] = []
    reached: dict[int, int] = {}

    def finish() -> None:
        nonlocal sent
        if execute:
            if lot:
                refusals.send(lot)
            _remember(groups, plan, refusals.topic, reached)
        sent += len(lot)
        lot.clear()

    for batch in refusals.read(plan):
        learn(plan, groups, refusals.topic, {word for each in batch for word in each.reasons})
        lot.extend(each for each in batch if plan.takes(each))
        reached.update({each.partition: each.offset + 1 for each in batch})
        if len(lot) >= LOT or sum(len(each.value or b"") for each in lot) >= LOT_BYTES:
            finish()
    finish()
    return sent


def _remember(groups: "Groups", plan: "Plan", topic: str, reached: dict[int, int]) -> None:
    """Commit the progress of a run; a forced run over old records must not move back."""
    if not plan.choice.is_remembered:
        return
    known = plan.by_reason.get(plan.choice.reason, {}) if plan.choice.reason else plan.everything
    ahead = {
        (topic, partition): offset
        for partition, offset in reached.items()
        if offset > known.get(partition, 0)
    }
    if ahead:
        groups.commit(plan.choice.group, ahead)


def _conclude(plan: "Plan", sent: int, *, execute: bool, as_json: bool) -> None:
    from barnabas.telemetry.jobs.redrive import how_to_force

    if as_json:
        print_json(
            {
                "executed": execute,
                "records": sent,
                "reasons": dict(plan.due),
                "left": dict(plan.passed),
                "group": plan.choice.group if plan.choice.is_remembered else None,
            }
        )
        return
    if plan.due:
        print_table(("REASON", "RECORDS"), plan.due.most_common())
    for why, count in plan.passed.most_common():
        warn(f"{plural(count, 'record')} left: {why}")
    if sent == 0:
        warn(f"Nothing to redrive; {how_to_force(plan.choice)}")
    elif execute:
        warn(f"Sent back {plural(sent, 'record')}; {_memory(plan.choice)}")
    else:
        warn(f"A dry run: {plural(sent, 'record')} would be sent back; add --execute to send")


def _memory(choice: "Choice") -> str:
    if not choice.is_remembered:
        return "a run without --offset may send it again"
    return f"group {choice.group} remembers it"


def _latest(refusals: "list[Refusal]", limit: int) -> "list[Refusal]":
    """Return the newest records of all partitions, the newest last."""
    ordered = sorted(refusals, key=lambda each: (each.timestamp_ms, each.partition, each.offset))
    return ordered[max(0, len(ordered) - limit) :]


def _show(topic: str, counts: "list[Tally]", newest: "list[Refusal]") -> None:
    if not counts:
        say(f"{topic} has no such records: nothing was rejected")
        return
    rows = [
        (
            each.reason,
            each.count,
            _time(each.first_ms),
            _time(each.last_ms),
            ", ".join(each.origins),
        )
        for each in counts
    ]
    print_table(("REASON", "RECORDS", "FIRST", "LAST", "FROM"), rows)
    for each in newest:
        origin = each.origin
        source = (
            f"{origin.topic}:{origin.partition}@{origin.offset}" if origin else "unknown origin"
        )
        again = f", redriven {each.redriven} times" if each.redriven else ""
        reasons = ", ".join(each.reasons)
        say(f"\n{topic}:{each.partition}@{each.offset}  {reasons}  from {source}{again}")
        if each.detail:
            say(f"  {each.detail}")
        say(f"  {_preview(each.value)}")


def _counted(each: "Tally") -> dict[str, object]:
    return {
        "reason": each.reason,
        "records": each.count,
        "first": _time(each.first_ms),
        "last": _time(each.last_ms),
        "topics": dict(each.origins),
    }


def _told(each: "Refusal") -> dict[str, object]:
    origin = each.origin
    return {
        "partition": each.partition,
        "offset": each.offset,
        "reasons": list(each.reasons),
        "detail": each.detail,
        "time": _time(each.timestamp_ms),
        "origin": origin._asdict() if origin else None,
        "redriven": each.redriven,
        "key": None if each.key is None else each.key.decode(errors="replace"),
        "value": None if each.value is None else each.value.decode(errors="replace"),
    }


def _preview(value: bytes | None) -> str:
    if value is None:
        return "(null)"
    text = value[: 4 * PREVIEW_LETTERS].decode(errors="replace")
    shown = "".join(letter if letter.isprintable() else "·" for letter in text)[:PREVIEW_LETTERS]
    return f"{shown} … ({len(value):,} bytes)" if len(shown) < len(text) else shown


def _time(timestamp_ms: int) -> str:
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def register(app: typer.Typer) -> None:
    """Add the commands to `barnabas telemetry`."""
    app.add_typer(dlq, name="dlq", help=HELP)
