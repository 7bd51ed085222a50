"""AlterConfigs (key 33), versions 0 to 2, and IncrementalAlterConfigs (key 44), versions 0 to 1.

The older one replaces all configs of a resource, the newer one changes those it names. Both take
effect at once: partitions take on their new configuration before the answer.

IncrementalAlterConfigs also changes the members of roles (`role_configs.py`). Changes of a broker's
TLS files are tested on that broker (`tls_configs.py`).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from barnabas.controller import configs
from barnabas.handlers.admin import role_configs, tls_configs
from barnabas.handlers.admin.config_resources import (
    CLIENT_METRICS,
    GROUP,
    ROLE,
    check_known_broker,
    require_alteration,
    resource_type,
)
from barnabas.handlers.context import RequestContext
from barnabas.metadata.metadata_records import ConfigChanged
from barnabas.metadata.security_records import RoleChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages import alter_configs, incremental_alter_configs
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class Resource(Protocol):
    """A resource, as both requests name it."""

    resource_type: int
    resource_name: str


class Verdict(Protocol):
    """The result for a resource, as both responses have it."""

    error_code: int


class Answer(Protocol):
    """The response of either API."""

    @property
    def responses(self) -> Sequence[Verdict]:
        """One result for each resource."""
        ...


R = TypeVar("R", bound=Resource)
A = TypeVar("A", bound=Answer)
Outcome = tuple[Resource, ErrorCode, str | None]


def handle(
    node: Node, request: AlterConfigsRequest, context: RequestContext
) -> AlterConfigsResponse | Pending[AlterConfigsResponse]:
    """Replace configs."""
    outcomes, records = _decide(
        node, context, request.resources, lambda resource: _replace(node, resource, context)
    )
    response = _replaced(outcomes)
    return response if request.validate_only else _commit(node, records, response, context)


def handle_incremental(
    node: Node, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse | Pending[IncrementalAlterConfigsResponse]:
    """Change configs one by one."""
    outcomes, records = _decide(
        node, context, request.resources, lambda resource: _alter(node, resource, context)
    )
    response = _altered(outcomes)
    return response if request.validate_only else _commit(node, records, response, context)


def refuse_here(
    node: Node, request: AlterConfigsRequest, context: RequestContext
) -> AlterConfigsResponse | None:
    """Refuse TLS files of this broker that it cannot use, as `handle` does on the controller."""
    refused = tls_configs.refused_here(
        node,
        context,
        request.resources,
        lambda each: configs.replace_broker(node.image, each.resource_name, _wanted(each)),
    )
    return None if refused is None else _replaced(refused)


def refuse_incremental_here(
    node: Node, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse | None:
    """Refuse TLS files of this broker that it cannot use."""
    refused = tls_configs.refused_here(
        node,
        context,
        request.resources,
        lambda each: configs.alter_broker(node.image, each.resource_name, _changes(each)),
    )
    return None if refused is None else _altered(refused)


def _replaced(outcomes: Sequence[Outcome]) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            alter_configs.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, code, message in outcomes
        ]
    )


def _altered(outcomes: Sequence[Outcome]) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, code, message in outcomes
        ]
    )


def _decide(
    node: Node,
    context: RequestContext,
    resources: Sequence[R],
    decide: Callable[[R], ConfigChanged | RoleChanged],
) -> tuple[list[Outcome], list[ConfigChanged | RoleChanged]]:
    outcomes: list[Outcome] = []
    records: list[ConfigChanged | RoleChanged] = []
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise ApiError(  # noqa: TRY301
                    ErrorCode.INVALID_REQUEST, "each resource can be named only once"
                )
            require_alteration(node, context, resource.resource_type, resource.resource_name)
            records.append(decide(resource))
        except ApiError as error:
            outcomes.append((resource, error.code, error.message))
            continue
        outcomes.append((resource, ErrorCode.NONE, None))
    return outcomes, records


def _commit(
    node: Node, records: list[ConfigChanged | RoleChanged], answer: A, context: RequestContext
) -> A | Pending[A]:
    if not records:
        return answer
    changes = [record for record in records if isinstance(record, ConfigChanged)]
    of_roles = [record for record in records if isinstance(record, RoleChanged)]
    try:
        committed = node.controlling.change_configs(changes, context.now_ms, of_roles)
        role_configs.note(node, context, of_roles)
        return committed.map(lambda _: answer)
    except ApiError as error:
        for verdict in answer.responses:
            verdict.error_code = verdict.error_code or error.code
        return answer


def _replace(
    node: Node, resource: alter_configs.AlterConfigsResource, context: RequestContext
) -> ConfigChanged:
    wanted, name = _wanted(resource), resource.resource_name
    if resource.resource_type == CLIENT_METRICS:
        return configs.replace_client_metrics(node.draft, name, wanted)
    if resource.resource_type == GROUP:
        return configs.replace_group(node.draft, name, wanted, node.settings.share)
    if resource_type(resource.resource_type) == "topic":
        return configs.replace_topic(node.draft, name, wanted, node.topic_defaults)
    check_known_broker(node, name)
    change = configs.replace_broker(node.draft, name, wanted)
    tls_configs.check_tls(node, context, change)
    return change


def _wanted(resource: alter_configs.AlterConfigsResource) -> dict[str, str]:
    wanted = {}
    for entry in resource.configs:
        if entry.value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{entry.name} was set to nothing")
        if entry.name in wanted:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{entry.name} is named more than once")
        wanted[entry.name] = entry.value
    return wanted


def _alter(
    node: Node,
    resource: incremental_alter_configs.AlterConfigsResource,
    context: RequestContext,
) -> ConfigChanged | RoleChanged:
    changes, name = _changes(resource), resource.resource_name
    if resource.resource_type == ROLE:
        return role_configs.alter(node, name, changes)
    if resource.resource_type == CLIENT_METRICS:
        return configs.alter_client_metrics(node.draft, name, changes)
    if resource.resource_type == GROUP:
        return configs.alter_group(node.draft, name, changes, node.settings.share)
    if resource_type(resource.resource_type) == "topic":
        return configs.alter_topic(node.draft, name, changes, node.topic_defaults)
    check_known_broker(node, name)
    change = configs.alter_broker(node.draft, name, changes)
    tls_configs.check_tls(node, context, change)
    return change


def _changes(resource: incremental_alter_configs.AlterConfigsResource) -> list[configs.Change]:
    changes = []
    for entry in resource.configs:
        if entry.config_operation not in tuple(configs.Operation):
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"operation {entry.config_operation} is not known"
            )
        operation = configs.Operation(entry.config_operation)
        changes.append(configs.Change(entry.name, operation, entry.value))
    return changes
