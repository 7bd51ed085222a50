"""Tests changes of a broker's TLS files on that broker, before the controller decides (KIP-226).

Only the broker itself can read the files. Clients send changes of a broker's configs to that
broker, which tests them and forwards them to the controller. Other brokers refuse them and name the
right one. If one part of a request is refused here, the whole request is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from barnabas.handlers.admin.config_resources import BROKER
from barnabas.handlers.authorization import ALTER_CONFIGS_CLUSTER, is_hidden
from barnabas.handlers.context import RequestContext
from barnabas.metadata.listener_tls import listeners_of
from barnabas.metadata.metadata_records import ConfigChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node


class Entry(Protocol):
    """A config, as both requests name it."""

    name: str


class Resource(Protocol):
    """A resource, as both requests name it."""

    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Sequence[Entry]:
        """Its configs in the request."""


R = TypeVar("R", bound=Resource)
OTHERS = "nothing was changed, since another resource of the request was refused"


def check_tls(node: Node, context: RequestContext, change: ConfigChanged) -> None:
    """Raise `ApiError` if a change of a broker's configs names unusable TLS files."""
    if not listeners_of(change.changes):
        return
    if change.name != str(node.node_id):
        if context.was_forwarded:
            return  # its own broker has tested it
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"only broker {change.name} can read its files; send the request to that broker",
        )
    if node.dynamic_tls is not None:
        present = node.image.broker_configs.get(change.name, {})
        node.dynamic_tls.check(_altered(present, change.changes), list(change.changes))


def refused_here(
    node: Node,
    context: RequestContext,
    resources: Sequence[R],
    decide: Callable[[R], ConfigChanged],
) -> list[tuple[R, ErrorCode, str]] | None:
    """Return why each resource of a request is refused; None if the controller may decide.

    A caller that may not alter configs gets no information about files here: the controller denies
    its request.
    """
    refused: dict[int, ApiError] = {}
    for place, resource in enumerate(resources):
        names = [entry.name for entry in resource.configs]
        if resource.resource_type != BROKER or not listeners_of(names):
            continue
        if is_hidden(node, context, ALTER_CONFIGS_CLUSTER):
            return None
        try:
            check_tls(node, context, decide(resource))
        except ApiError as error:
            refused[place] = error
    if not refused:
        return None
    other = ApiError(ErrorCode.INVALID_REQUEST, OTHERS)
    errors = [refused.get(place, other) for place in range(len(resources))]
    pairs = zip(resources, errors, strict=True)
    return [(resource, error.code, error.message) for resource, error in pairs]


def _altered(present: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**present, **changes}
    return {name: value for name, value in merged.items() if value is not None}
