"""Resets and deletes groups."""

from starlette.routing import Route

from barnabas.admin.groups.group_resets import (
    busy_sentence,
    parse_target,
    reset_moves,
    reset_places,
)
from barnabas.console.changes.topic_changes import require_confirmed
from barnabas.console.cluster_access import open_groups
from barnabas.console.console_endpoints import Asked, ConsoleParts, change
from barnabas.console.web.problems import bad_input, in_the_way, not_found


def group_change_routes(parts: ConsoleParts) -> list[Route]:
    """Return the routes that change groups."""

    def reset(asked: Asked) -> object:
        name = asked.target = asked.name()
        to = asked.body.raw("to")
        if not isinstance(to, str | int) or isinstance(to, bool):
            raise bad_input('"to" must be beginning, end, an offset, a time, -1h, +100 or -100')
        target, scopes = parse_target(str(to)), asked.body.texts("topics")
        asked.is_dry_run = asked.body.flag("dry_run", default=False)
        asked.details = {"to": to, "topics": scopes}
        groups = open_groups(parts.settings, asked.session)
        (group,) = groups.describe([name])
        busy = busy_sentence(group)
        if busy is not None and not asked.is_dry_run:
            raise in_the_way(busy)
        warnings = [] if busy is None else [busy]
        places = reset_places(groups, group, target, scopes, warnings.append)
        moves = reset_moves(groups, group, places, target)
        if not asked.is_dry_run:
            groups.commit(name, {each.place: each.after for each in moves})
        return {
            "changes": [each.as_json() for each in moves],
            "applied": not asked.is_dry_run,
            "warnings": warnings,
        }

    def delete(asked: Asked) -> object:
        name = asked.target = asked.name()
        require_confirmed(asked.body, name)
        groups = open_groups(parts.settings, asked.session)
        (group,) = groups.describe([name])
        if not group.exists:
            raise not_found(f"There is no group {name}; `barnabas group list` lists all groups")
        groups.delete(name)
        return {"deleted": True}

    one = "/api/groups/{name:path}"
    return [
        change(parts, "POST", f"{one}/reset", "group.reset", reset),
        change(parts, "DELETE", one, "group.delete", delete),
    ]
