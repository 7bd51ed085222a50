"""Creates, changes, trims and deletes topics."""

from typing import Any

from starlette.routing import Route

from barnabas.admin.topic_requests import (
    TOPIC,
    ConfigRow,
    add_partitions,
    change_topic_configs,
    create_topic,
    delete_topic,
    describe_configs,
    topic_metadata,
    trim,
)
from barnabas.console.cluster_access import open_wire
from barnabas.console.console_endpoints import Asked, ConsoleParts, change, live
from barnabas.console.records.log_positions import log_ranges
from barnabas.console.web.problems import bad_input
from barnabas.console.web.request_bodies import Body

PARTITIONS_MAX = 10_000


class TopicChanges:
    """The endpoints that change topics, and that read their configs."""

    def __init__(self, parts: ConsoleParts) -> None:
        self._parts = parts

    def routes(self) -> list[Route]:
        """Return the routes; those with a fixed end come before `/api/topics/{name}`."""
        parts, one = self._parts, "/api/topics/{name:path}"
        return [
            live(parts, f"{one}/configs", self._configs),
            change(parts, "POST", "/api/topics", "topic.create", self._create),
            change(parts, "POST", f"{one}/configs", "topic.configs", self._change_configs),
            change(parts, "POST", f"{one}/partitions", "topic.partitions", self._grow),
            change(parts, "POST", f"{one}/trim", "topic.trim", self._trim),
            change(parts, "DELETE", one, "topic.delete", self._delete),
        ]

    def _configs(self, asked: Asked) -> object:
        with open_wire(self._parts.settings, asked.session) as wire:
            rows = describe_configs(wire, TOPIC, asked.name())
        return {"items": [row.as_json() for row in rows]}

    def _create(self, asked: Asked) -> object:
        body = asked.body
        name = asked.target = body.text("name")
        configs = text_values(body, "configs")
        asked.is_dry_run = body.flag("dry_run", default=False)
        partitions = body.optional_count("partitions", 1, PARTITIONS_MAX)
        factor = body.optional_count("replication_factor", 1, 1000)
        asked.details = {"partitions": partitions, "replication_factor": factor, "configs": configs}
        with open_wire(self._parts.settings, asked.session) as wire:
            create_topic(
                wire,
                name,
                partitions=partitions,
                replication_factor=factor,
                configs=configs,
                validate_only=asked.is_dry_run,
            )
        return {"created": not asked.is_dry_run}

    def _change_configs(self, asked: Asked) -> object:
        name = asked.target = asked.name()
        values, removed = text_values(asked.body, "set"), asked.body.texts("delete")
        if not values and not removed:
            raise bad_input("Nothing to change; name configs in set or delete")
        asked.is_dry_run = asked.body.flag("dry_run", default=False)
        asked.details = {"set": values, "delete": removed}
        with open_wire(self._parts.settings, asked.session) as wire:
            before = {row.name: row for row in describe_configs(wire, TOPIC, name)}
            change_topic_configs(wire, name, values, removed, validate_only=asked.is_dry_run)
        named = [*values, *(each for each in removed if each not in values)]
        return {"changes": [_config_change(before.get(each), each, values) for each in named]}

    def _grow(self, asked: Asked) -> object:
        name = asked.target = asked.name()
        count = asked.body.count("count", 1, PARTITIONS_MAX)
        asked.is_dry_run = asked.body.flag("dry_run", default=False)
        with open_wire(self._parts.settings, asked.session) as wire:
            before = len(topic_metadata(wire, name).partitions)
            asked.details = {"before": before, "after": count}
            if count < before:
                raise bad_input(f"Topic {name} has {before} partitions and cannot shrink")
            if count > before:
                add_partitions(wire, name, count, validate_only=asked.is_dry_run)
        return {"before": before, "after": count}

    def _trim(self, asked: Asked) -> object:
        name = asked.target = asked.name()
        before = _offsets(asked.body)
        asked.is_dry_run = asked.body.flag("dry_run", default=False)
        asked.details = {"before": before}
        with open_wire(self._parts.settings, asked.session) as wire:
            starts, ends = log_ranges(wire, name, before)
            for number, offset in before.items():
                if number not in ends:
                    raise bad_input(f"{name}-{number} does not exist, or has no leader now")
                if offset > ends[number]:
                    raise bad_input(f"{name}-{number} ends at {ends[number]}; {offset} is later")
            if not asked.is_dry_run:
                trim(wire, name, before)
        deleted = {str(each): max(0, to - starts[each]) for each, to in before.items()}
        return {"deleted": deleted}

    def _delete(self, asked: Asked) -> object:
        name = asked.target = asked.name()
        require_confirmed(asked.body, name)
        with open_wire(self._parts.settings, asked.session) as wire:
            delete_topic(wire, name)
        return {"deleted": True}


def require_confirmed(body: Body, name: str) -> None:
    """Raise unless the request repeats the name of what it deletes."""
    if body.text("confirm", "") != name:
        raise bad_input(f'To delete {name}, repeat its name in "confirm"')


def text_values(body: Body, name: str) -> dict[str, str]:
    """Return a field whose values are texts; numbers and flags are written as Kafka does."""
    found = {}
    for key, value in body.mapping(name).items():
        if isinstance(value, bool):
            found[key] = str(value).lower()
        elif isinstance(value, str | int | float):
            found[key] = str(value)
        else:
            raise bad_input(f'"{name}" has no value for {key}; write text or a number')
    return found


def _config_change(before: ConfigRow | None, name: str, values: dict[str, str]) -> dict[str, Any]:
    old = None if before is None else before.value
    default = None if before is None else before.default
    return {"name": name, "before": old, "after": values.get(name, default)}


def _offsets(body: Body) -> dict[int, int]:
    found: dict[int, int] = {}
    for partition, offset in body.mapping("before").items():
        is_offset = isinstance(offset, int) and not isinstance(offset, bool) and offset >= 0
        if not partition.isdigit() or not is_offset:
            raise bad_input('"before" must be offsets by partition, such as {"0": 100}')
        found[int(partition)] = offset
    if not found:
        raise bad_input('"before" names no partition; write {"0": 100}')
    return found
