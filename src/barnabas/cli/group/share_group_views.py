"""Share groups in the commands of `barnabas group`, which librdkafka's admin client cannot see."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.admin.groups.group_admin import no_group
from barnabas.admin.groups.share_group_admin import ShareGroup, ShareGroupAdmin
from barnabas.admin.scopes import parse_scope
from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.output import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from barnabas.admin.groups.group_lag import Report


def with_share_groups(
    reports: "Sequence[Report]", shares: ShareGroupAdmin
) -> "list[Report | ShareGroup]":
    """Return the reports; a group that does not exist is a share group, or an error."""
    return [
        report if report.group.exists else required(shares, report.group.name) for report in reports
    ]


def required(shares: ShareGroupAdmin, name: str) -> ShareGroup:
    """Return a share group, or raise if there is none of that name."""
    found = shares.find(name)
    if found is None:
        raise no_group(name)
    return found


def share_parts(group: ShareGroup, places_of: "dict[str, str]") -> "list[RenderableType]":
    """Return a share group for a terminal; `places_of` has what each member reads."""
    from rich.text import Text

    head = [f"Group {group.name}", "Share", group.state, group.assignor]
    head += [f"coordinator {group.coordinator}", plural(len(group.members), "member")]
    parts: list[RenderableType] = [Text("  ".join(word for word in head if word), style="bold")]
    if group.members:
        rows = [
            (each.member_id, each.client_id, each.host, places_of[each.member_id])
            for each in group.members
        ]
        parts.append(table(("MEMBER", "CLIENT", "HOST", "PARTITIONS"), rows))
    progress = [
        (topic, number, each.start, each.lag) for (topic, number), each in group.progress.items()
    ]
    parts.append(table(("TOPIC", "PARTITION", "START", "LAG"), progress))
    parts.append(Text(f"{plural(group.lag, 'record')} not done, those in flight included"))
    return parts


def topics_of(group: ShareGroup, scopes: Sequence[str]) -> list[str]:
    """Return the topics that scopes name; a share group forgets whole topics only."""
    known = {topic for topic, _ in group.progress}
    topics = []
    for scope in scopes:
        topic, partitions = parse_scope(scope, "--topic")
        if partitions is not None:
            raise CommandError(
                f"Group {group.name} is a share group, which forgets whole topics only; "
                f"write --topic {topic}"
            )
        if topic not in known:
            raise CommandError(
                f"Group {group.name} has read nothing of {topic}; "
                f"`barnabas group describe {group.name}` shows its topics"
            )
        topics.append(topic)
    return topics
