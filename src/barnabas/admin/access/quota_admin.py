"""List, set and remove client quotas (KIP-546).

An entity is a user, a client id, both, or an address. The name `*default*` means all users, client
ids or addresses without a quota for their name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from barnabas.admin.admin_errors import AdminError
from barnabas.config.units import parse_size
from barnabas.model.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    OpData,
)
from barnabas.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from barnabas.wire.cluster_wire import NOT_YET, Wire, settled

DEFAULT = "*default*"
USER, CLIENT_ID, IP = "user", "client-id", "ip"
SIZES = ("producer_byte_rate", "consumer_byte_rate")
PERCENTAGES = ("request_percentage",)
RATES = ("controller_mutation_rate", "connection_creation_rate")
KEYS = (*SIZES, *PERCENTAGES, *RATES)
EXACT, MATCH_DEFAULT = 0, 1

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Entity:
    """The entity of a quota; a name of None is the default."""

    names: Mapping[str, str | None]

    @property
    def text(self) -> str:
        """Return the entity as text."""
        order = [kind for kind in (USER, CLIENT_ID, IP) if kind in self.names]
        return ", ".join(f"{kind} {shown(self.names[kind])}" for kind in order)

    def as_json(self) -> dict[str, str]:
        """Return the entity as a JSON object."""
        return {kind: shown(name) for kind, name in self.names.items()}


@dataclass(frozen=True, slots=True)
class QuotaEntry:
    """The quotas of an entity."""

    entity: Entity
    values: Mapping[str, float]

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {"entity": self.entity.as_json(), "quotas": dict(self.values)}


def entity_from(user: str | None, client_id: str | None, ip: str | None) -> Entity:
    """Return the entity that options name."""
    given = {USER: user, CLIENT_ID: client_id, IP: ip}
    names = {kind: None if name == DEFAULT else name for kind, name in given.items() if name}
    if not names:
        raise AdminError("Say what the quota is for with --user, --client-id, both, or --ip")
    if IP in names and len(names) > 1:
        raise AdminError("A quota with --ip cannot have --user or --client-id as well")
    return Entity(names)


def shown(name: str | None) -> str:
    """Return a name as text."""
    return DEFAULT if name is None else name


def parse_quota(text: str) -> tuple[str, float]:
    """Return the key and the value of a text such as `producer_byte_rate=1MB`."""
    key, separator, raw = text.partition("=")
    if not separator or key not in KEYS:
        raise AdminError(f"{text!r} is not a quota; write KEY=VALUE with one of {', '.join(KEYS)}")
    try:
        if key in SIZES:
            value = float(parse_size(raw))
        else:
            value = float(raw.removesuffix("%") if key in PERCENTAGES else raw)
    except ValueError:
        value = -1.0
    if not isfinite(value) or value <= 0:
        example = "1MB" if key in SIZES else "25"
        raise AdminError(
            f"{raw!r} is not a value for {key}; write a number above 0 such as {example}"
        )
    return key, value


class Quotas:
    """The client quotas of a cluster."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self, names: Mapping[str, str | None], *, exact: bool = False) -> list[QuotaEntry]:
        """Return the quotas of all entities with these names; `exact` allows no other parts."""
        components = [
            ComponentData(
                entity_type=kind,
                match_type=MATCH_DEFAULT if name is None else EXACT,
                match=name,
            )
            for kind, name in names.items()
        ]
        request = DescribeClientQuotasRequest(components=components, strict=exact)

        def ask() -> tuple[int, DescribeClientQuotasResponse]:
            answer = self._wire.ask_any(request, DescribeClientQuotasResponse)
            if answer.error_code not in (ErrorCode.NONE, *NOT_YET) and answer.error_message:
                raise AdminError(f"The quotas cannot be listed: {answer.error_message}")
            return answer.error_code, answer

        answer = settled(ask, "The quotas cannot be listed")
        found = [
            QuotaEntry(
                Entity({part.entity_type: part.entity_name for part in entry.entity}),
                {each.key: each.value for each in entry.values},
            )
            for entry in answer.entries or ()
        ]
        return sorted(found, key=lambda entry: entry.entity.text)

    def of(self, entity: Entity) -> Mapping[str, float]:
        """Return the quotas of one entity."""
        found = self.list(entity.names, exact=True)
        return found[0].values if found else {}

    def set(self, entity: Entity, values: Mapping[str, float], *, dry_run: bool = False) -> None:
        """Set some quotas of an entity, and leave the others."""
        ops = [OpData(key=key, value=value, remove=False) for key, value in values.items()]
        self._alter(entity, ops, dry_run=dry_run)

    def remove(self, entity: Entity, keys: Sequence[str], *, dry_run: bool = False) -> None:
        """Remove some quotas of an entity."""
        ops = [OpData(key=key, value=0.0, remove=True) for key in keys]
        self._alter(entity, ops, dry_run=dry_run)

    def _alter(self, entity: Entity, ops: Sequence[OpData], *, dry_run: bool) -> None:
        parts = [
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.names.items()
        ]
        entry = AlterClientQuotasRequestEntryData(entity=parts, ops=list(ops))
        request = AlterClientQuotasRequest(entries=[entry], validate_only=dry_run)
        what = f"The quotas of {entity.text} were not changed"

        def ask() -> tuple[int, None]:
            (result,) = self._wire.ask_any(request, AlterClientQuotasResponse).entries
            if result.error_code not in (ErrorCode.NONE, *NOT_YET) and result.error_message:
                raise AdminError(f"{what}: {result.error_message}")
            return result.error_code, None

        settled(ask, what)
