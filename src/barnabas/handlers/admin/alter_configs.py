"""AlterConfigs (key 33), versions 0 to 2, and IncrementalAlterConfigs (key 44), versions 0 to 1.

The older one replaces all configs of a resource, the newer one changes those it names. Both take
effect at once: partitions take on their new configuration before the answer.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from barnabas.controller import configs
from barnabas.handlers.admin.config_resources import check_known_broker, resource_type
from barnabas.handlers.context import RequestContext
from barnabas.metadata.metadata_records import ConfigChanged
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
    """What both requests say of a resource."""

    resource_type: int
    resource_name: str


class Verdict(Protocol):
    """What both answers say of a resource."""

    error_code: int


class Answer(Protocol):
    """What both answers are."""

    @property
    def responses(self) -> Sequence[Verdict]:
        """A verdict a resource."""
        ...


R = TypeVar("R", bound=Resource)
A = TypeVar("A", bound=Answer)
Outcome = tuple[Resource, ErrorCode, str | None]


def handle(
    node: Node, request: AlterConfigsRequest, context: RequestContext
) -> AlterConfigsResponse | Pending[AlterConfigsResponse]:
    """Replace configs."""
    outcomes, records = _decide(request.resources, lambda resource: _replace(node, resource))
    response = AlterConfigsResponse(
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
    return response if request.validate_only else _commit(node, records, response, context)


def handle_incremental(
    node: Node, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse | Pending[IncrementalAlterConfigsResponse]:
    """Change configs one by one."""
    outcomes, records = _decide(request.resources, lambda resource: _alter(node, resource))
    response = IncrementalAlterConfigsResponse(
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
    return response if request.validate_only else _commit(node, records, response, context)


def _decide(
    resources: Sequence[R], decide: Callable[[R], ConfigChanged]
) -> tuple[list[Outcome], list[ConfigChanged]]:
    outcomes: list[Outcome] = []
    records = []
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise ApiError(  # noqa: TRY301
                    ErrorCode.INVALID_REQUEST, "each resource can be named only once"
                )
            records.append(decide(resource))
        except ApiError as error:
            outcomes.append((resource, error.code, error.message))
            continue
        outcomes.append((resource, ErrorCode.NONE, None))
    return outcomes, records


def _commit(
    node: Node, records: list[ConfigChanged], answer: A, context: RequestContext
) -> A | Pending[A]:
    if not records:
        return answer
    try:
        return node.controlling.change_configs(records, context.now_ms).map(lambda _: answer)
    except ApiError as error:
        for verdict in answer.responses:
            verdict.error_code = verdict.error_code or error.code
        return answer


def _replace(node: Node, resource: alter_configs.AlterConfigsResource) -> ConfigChanged:
    wanted = {}
    for entry in resource.configs:
        if entry.value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{entry.name} was set to nothing")
        if entry.name in wanted:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{entry.name} is named more than once")
        wanted[entry.name] = entry.value
    if resource_type(resource.resource_type) == "topic":
        return configs.replace_topic(
            node.draft, resource.resource_name, wanted, node.topic_defaults
        )
    check_known_broker(node, resource.resource_name)
    return configs.replace_broker(node.draft, resource.resource_name, wanted)


def _alter(node: Node, resource: incremental_alter_configs.AlterConfigsResource) -> ConfigChanged:
    changes = []
    for entry in resource.configs:
        if entry.config_operation not in tuple(configs.Operation):
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"operation {entry.config_operation} is not known"
            )
        operation = configs.Operation(entry.config_operation)
        changes.append(configs.Change(entry.name, operation, entry.value))
    if resource_type(resource.resource_type) == "topic":
        return configs.alter_topic(node.draft, resource.resource_name, changes, node.topic_defaults)
    check_known_broker(node, resource.resource_name)
    return configs.alter_broker(node.draft, resource.resource_name, changes)
