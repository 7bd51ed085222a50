"""Execute a reassignment plan: submit it, show its progress, then elect preferred leaders.

The cluster does the work. If the command is interrupted, the reassignment continues.
"""

import time

from barnabas.admin.inspection import describe_cluster, list_reassignments, open_wire, probe
from barnabas.admin.placement_planning import partitions_by_topic
from barnabas.admin.reassignments import Plan, elect, sizes_of, standing, submit
from barnabas.admin.replica_placement import Replicas
from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.output import say, table
from barnabas.cli.common.progress import Progress
from barnabas.wire.wire_failures import LinkError

LOOK_S = 0.5
SHOWN_MAX = 40
MEGABYTE = 1_000_000
GOES_ON = (
    "The reassignment continues; `barnabas cluster status --watch` shows its progress, "
    "`barnabas partition reassign --cancel` cancels it"
)


def show_plan(plan: Plan) -> None:
    """Show the changes of a plan, only the first ones of a long plan."""
    from barnabas.cli.common.output import console

    rows = [
        (*each.place, _listed(each.before), _listed(each.after), format_bytes(each.bytes_to_move))
        for each in plan.changes[:SHOWN_MAX]
    ]
    console().print(table(("TOPIC", "PARTITION", "BEFORE", "AFTER", "TO COPY"), rows))
    if len(plan.changes) > SHOWN_MAX:
        say(f"... and {len(plan.changes) - SHOWN_MAX:,} more; --json shows all")
    say(
        f"{plural(len(plan.changes), 'partition')}, {plural(plan.moves, 'new replica')}, "
        f"{format_bytes(plan.bytes_to_move)} to replicate"
    )


def carry_out(plan: Plan, bootstrap: str, properties: list[str] | None, *, wait: bool) -> None:
    """Submit a plan, and optionally wait until it is done."""
    with open_wire(bootstrap, properties) as wire:
        refused = submit(wire, plan.after)
    if refused:
        raise CommandError(
            f"{len(refused)} of {plural(len(plan.changes), 'partition')} cannot be moved: "
            f"{refused[0]}"
        )
    if not wait:
        return
    try:
        _wait(plan, bootstrap, properties)
    except KeyboardInterrupt:
        warn(GOES_ON)
        raise
    with open_wire(bootstrap, properties) as wire:
        elect(wire, plan.after)


def _wait(plan: Plan, bootstrap: str, properties: list[str] | None) -> None:
    total = plan.bytes_to_move
    with Progress("MB copied", total=max(1, total)) as progress:
        while True:
            try:
                with open_wire(bootstrap, properties, 5.0) as wire:
                    moving = list_reassignments(wire)
                    brokers, security = describe_cluster(wire).brokers, wire.security
            except LinkError:  # a broker or the controller has just stopped; another will answer
                time.sleep(LOOK_S)
                continue
            sizes = sizes_of(probe(brokers, partitions_by_topic(plan.after), security))
            now = standing(plan, moving, sizes)
            if not now.partitions_left:
                return
            left = f"{plural(now.copies_left, 'replica')} left"
            progress.update(now.bytes_copied, now.bytes_copied // MEGABYTE, left)
            time.sleep(LOOK_S)


def format_bytes(count: float) -> str:
    """Return a number of bytes as text."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def _listed(replicas: Replicas) -> str:
    return ",".join(map(str, replicas))
