"""Decides on AlterClientQuotas (key 49), and finds what DescribeClientQuotas (key 48) asks for.

An entity is a user, a client id or both, or an address; a name of None is the default for all that
have no quota themselves. A wrong entry is refused as a whole and does not affect the others.

Unlike in Kafka, a quota of 0 or less, an entity that a request names twice, and an address that is
not a number are INVALID_REQUEST. Kafka accepts these, and resolves host names.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from math import isfinite
from typing import NamedTuple

from barnabas.metadata.features import SECURITY_LEVEL
from barnabas.metadata.image import Image
from barnabas.metadata.security_image import Entity, entity_of
from barnabas.metadata.security_records import ClientQuotaChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequestEntryData,
    OpData,
)
from barnabas.protocol.messages.describe_client_quotas import ComponentData

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)
WHOLE_KEYS = ("producer_byte_rate", "consumer_byte_rate", "connection_creation_rate")
CLIENT_KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
IP_KEYS = ("connection_creation_rate",)
EXACT, DEFAULT, ANY = 0, 1, 2
EPSILON = 1e-6


class Alteration(NamedTuple):
    """The result of one entry of a request."""

    records: list[ClientQuotaChanged]
    error: ApiError | None


def check_level(image: Image) -> None:
    """Raise `ApiError` if not all brokers can read the records of quotas."""
    if image.feature_level < SECURITY_LEVEL:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"quotas need feature level {SECURITY_LEVEL} and the cluster is at level "
            f"{image.feature_level}; run `barnabas cluster upgrade` once all brokers are upgraded",
        )


def alter(image: Image, entries: Sequence[AlterClientQuotasRequestEntryData]) -> list[Alteration]:
    """Return the records for each entry, or the reason for which it is refused."""
    times = Counter(map(_named, entries))
    found = []
    for entry in entries:
        try:
            check_level(image)
            if times[_named(entry)] > 1:
                raise _invalid("the request names this entity more than once")
            found.append(Alteration(_alter_one(image, entry), None))
        except ApiError as error:
            found.append(Alteration([], error))
    return found


def matching(
    quotas: Mapping[Entity, dict[str, float]], components: Sequence[ComponentData], *, strict: bool
) -> list[tuple[Entity, dict[str, float]]]:
    """Return the entities that meet all components; with `strict` those that have no other part."""
    wanted = _wanted(components)
    found = []
    for entity, values in quotas.items():
        names = dict(entity)
        if strict and (len(names) != len(wanted) or not wanted):
            continue
        if all(_meets(names, component) for component in wanted.values()):
            found.append((entity, values))
    return found


def _alter_one(image: Image, entry: AlterClientQuotasRequestEntryData) -> list[ClientQuotaChanged]:
    names = _checked_names(entry)
    present = image.security.quotas.get(entity_of(names), {})
    keys = IP_KEYS if IP in names else CLIENT_KEYS
    records = []
    for op in _each_once(entry.ops):
        if op.remove:
            if op.key in present:
                records.append(ClientQuotaChanged(entity=names, key=op.key, value=None))
            continue
        _check_value(op, keys)
        if present.get(op.key) != op.value:
            records.append(ClientQuotaChanged(entity=names, key=op.key, value=op.value))
    return records


def _checked_names(entry: AlterClientQuotasRequestEntryData) -> dict[str, str | None]:
    if not entry.entity:
        raise _invalid("the request names no entity")
    names: dict[str, str | None] = {}
    for part in entry.entity:
        kind, name = part.entity_type, part.entity_name
        if kind not in TYPES:
            raise _invalid(f"there is no entity type {kind!r}; there are {', '.join(TYPES)}")
        if kind in names:
            raise _invalid(f"the entity has more than one {kind}")
        if name == "":
            raise _invalid(f"the {kind} has an empty name; the default has none")
        names[kind] = name
    if IP in names:
        if len(names) > 1:
            raise _invalid("a quota of an address cannot be combined with a user or a client id")
        names[IP] = _checked_address(names[IP])
    return names


def _checked_address(host: str | None) -> str | None:
    if host is None:
        return None
    try:
        return str(ip_address(host))
    except ValueError:
        raise _invalid(f"{host!r} is not an IP address; write one such as 10.0.0.1") from None


def _each_once(ops: Sequence[OpData]) -> Sequence[OpData]:
    keys = [op.key for op in ops]
    if len(set(keys)) < len(keys):
        raise _invalid("the entry names a quota more than once")
    return ops


def _check_value(op: OpData, keys: Sequence[str]) -> None:
    if op.key not in keys:
        raise _invalid(f"{op.key!r} is not a quota of this entity; use one of {', '.join(keys)}")
    if not isfinite(op.value) or op.value <= 0:
        raise _invalid(f"{op.key} must be greater than 0; remove the quota to set no limit")
    if op.key in WHOLE_KEYS and abs(op.value - round(op.value)) > EPSILON:
        raise _invalid(f"{op.key} must be a whole number")


def _wanted(components: Sequence[ComponentData]) -> dict[str, ComponentData]:
    wanted: dict[str, ComponentData] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("a component has no entity type")
        if kind in wanted:
            raise _invalid(f"the filter names {kind} more than once")
        if kind not in TYPES:
            code = ErrorCode.UNSUPPORTED_VERSION
            raise ApiError(code, f"there is no entity type {kind!r}; there are {', '.join(TYPES)}")
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise _invalid(f"{component.match_type} is not a match type")
        if (component.match is None) == (component.match_type == EXACT):
            raise _invalid("an exact match needs a name, and no other match has one")
        wanted[kind] = component
    if IP in wanted and len(wanted) > 1:
        raise _invalid("a filter for an address cannot be combined with a user or a client id")
    return wanted


def _meets(names: Mapping[str, str | None], component: ComponentData) -> bool:
    if component.entity_type not in names:
        return False
    name = names[component.entity_type]
    return component.match_type == ANY or name == component.match


def _named(entry: AlterClientQuotasRequestEntryData) -> frozenset[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in entry.entity)


def _invalid(problem: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, problem)
