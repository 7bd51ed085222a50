"""Plan and apply the reset of a group: which partitions, from which offset to which."""

import re
import time
from collections.abc import Callable, Sequence

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.groups.group_admin import Group, Groups
from barnabas.admin.groups.reset_targets import (
    Move,
    ShiftBy,
    Target,
    ToEarliest,
    ToGiven,
    ToLatest,
    ToOffset,
    ToTime,
    move,
)
from barnabas.admin.scopes import Place, expand, parse_scope
from barnabas.admin.topic_positions import parse_time_ms
from barnabas.admin.wording import plural
from barnabas.model import durations

TARGET_FORMS = "beginning, end, an offset, +100, -100, -1h, or a time such as 2026-03-01T12:00:00Z"
_SHIFT = re.compile(r"[+-]\d{1,18}")


def parse_target(text: str) -> Target:
    """Parse a target as people write it in one word."""
    word = text.strip()
    if word == "beginning":
        return ToEarliest()
    if word == "end":
        return ToLatest()
    if word.isascii() and word.isdigit() and len(word) <= 18:
        return ToOffset(int(word))
    if _SHIFT.fullmatch(word):
        return ShiftBy(int(word))
    try:
        if word.startswith("-"):
            return ToTime(time.time_ns() // 1_000_000 - durations.parse_duration_ms(word[1:]))
        return ToTime(parse_time_ms(word.removeprefix("@")))
    except (ValueError, AdminError):
        raise AdminError(f"{text!r} is not a target of a reset; write {TARGET_FORMS}") from None


def busy_sentence(group: Group) -> str | None:
    """Return why a group cannot be reset now; None if it can."""
    if not group.members:
        return None
    clients = ", ".join(sorted({f"{each.client_id} at {each.host}" for each in group.members}))
    return (
        f"Group {group.name} has {plural(len(group.members), 'member')} ({clients}), and can "
        "be reset only without; stop them, wait for their session timeout, and try again"
    )


def reset_places(
    groups: Groups,
    group: Group,
    target: Target,
    scopes: Sequence[str],
    on_warning: Callable[[str], None],
) -> list[Place]:
    """Return the partitions to reset: those that scopes name, or all with committed offsets."""
    counts = groups.partition_counts()
    if isinstance(target, ToGiven):
        return expand([(topic, [number]) for topic, number in target.offsets], counts)
    if scopes:
        return expand([parse_scope(scope, "--topic") for scope in scopes], counts)
    if not group.committed:
        raise AdminError(f"Group {group.name} has committed nothing; name topics with --topic")
    gone = sorted(place for place in group.committed if place[1] >= counts.get(place[0], 0))
    for topic, number in gone:
        on_warning(f"{topic}:{number} no longer exists, and was skipped")
    return sorted(set(group.committed) - set(gone))


def reset_moves(groups: Groups, group: Group, places: list[Place], target: Target) -> list[Move]:
    """Return the effect of a reset on each partition."""
    ends = groups.ends(places)
    at_time = groups.offsets_at(places, target.timestamp_ms) if isinstance(target, ToTime) else {}
    for place in places:
        if place not in ends or (isinstance(target, ToTime) and place not in at_time):
            raise AdminError(f"{place[0]}:{place[1]} has no leader now; start its broker")
    return [
        move(target, place, group.committed.get(place), ends[place], at_time.get(place))
        for place in places
    ]
