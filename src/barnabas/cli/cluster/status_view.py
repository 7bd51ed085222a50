"""Render the overview of a cluster for a terminal."""

from typing import TYPE_CHECKING

from barnabas.admin.cluster_overview import Member, Overview, Partitions, Quorum
from barnabas.admin.health import Health, Verdict, verdict
from barnabas.admin.wording import format_duration, plural
from barnabas.cli.common.output import table

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

COLOURS = {Verdict.HEALTHY: "green", Verdict.DEGRADED: "yellow", Verdict.UNAVAILABLE: "red"}


def draw_status(found: Overview) -> "Group":
    """Render brokers, quorum and partitions, with the health on top."""
    from rich.console import Group

    parts: list[RenderableType] = [draw_health(verdict(found)), "", _brokers(found)]
    if found.feature_level is not None:
        parts += ["", f"Feature level  {found.feature_level}"]
    if found.quorum is not None:
        parts += ["", _quorum_line(found.quorum), _members(found.quorum)]
    return Group(*parts, "", _partitions(found.partitions))


def draw_health(health: Health) -> "Text":
    """Render the health with its reasons."""
    from rich.text import Text

    lines = Text(health.verdict.value, style=f"bold {COLOURS[health.verdict]}")
    for reason in health.reasons:
        lines.append(f"\n  {reason}", style="not bold default")
    for warning in health.warnings:
        lines.append(f"\n  warning: {warning}", style="not bold default")
    return lines


def _brokers(found: Overview) -> "Table":
    titles = ("BROKER", "ADDRESS", "RACK", "STATE", "LEADERS", "REPLICAS", "IN SYNC", "DISK FREE")
    leader = None if found.quorum is None else found.quorum.leader
    rows = [
        (
            each.id,
            each.address,
            each.rack,
            f"{each.state}, controller" if each.id == leader else each.state,
            each.leaders,
            each.replicas,
            each.in_sync,
            None if each.disk_free is None else f"{each.disk_free:.0%}",
        )
        for each in found.brokers
    ]
    return table(titles, rows)


def _quorum_line(quorum: Quorum) -> str:
    leader = "no leader" if quorum.leader is None else f"leader {quorum.leader}"
    votes = quorum.votes
    return (
        f"Quorum  {leader}  epoch {quorum.epoch}  high watermark {quorum.high_watermark}  "
        f"{len(votes.caught_up)} of {plural(len(votes.voters), 'voter')} caught up, "
        f"stands the loss of {votes.losses_left}"
    )


def _members(quorum: Quorum) -> "Table":
    rows = [_member("voter", each) for each in quorum.voters]
    rows += [_member("observer", each) for each in quorum.observers]
    return table(("NODE", "ROLE", "LAG", "LAST CONTACT"), rows)


def _member(role: str, each: Member) -> tuple[object, ...]:
    heard = each.last_contact_ms
    return each.id, role, each.lag, None if heard is None else f"{format_duration(heard)} ago"


def _partitions(found: Partitions) -> "Table":
    rows: list[tuple[str, int]] = [
        ("total", found.total),
        ("under-replicated", len(found.under_replicated)),
        ("under min ISR", len(found.under_min_isr)),
        ("at min ISR", len(found.at_min_isr)),
        ("replicas at or below min ISR", len(found.replicas_at_min_isr)),
        ("below replication factor", len(found.below_replication_factor)),
        ("offline", len(found.offline)),
        ("reassigning", len(found.reassigning)),
        ("not led by their preferred leader", len(found.not_led_as_preferred)),
    ]
    return table(("PARTITIONS", ""), rows)
