"""CreateAcls (key 30), DescribeAcls (29) and DeleteAcls (31), versions 1 to 3 (KIP-140, KIP-290).

Without an authorizer each is SECURITY_DISABLED. Creating and deleting need ALTER on the cluster,
describing needs DESCRIBE. An invalid creation or filter is INVALID_REQUEST by itself, and the
others take effect. Creating an ACL that exists is not an error, and neither is a filter that
matches nothing. All ACLs of a request are committed together.

Deviations: an UNKNOWN element is INVALID_REQUEST for its item, while Kafka closes the connection. A
host must not be empty.
"""

from functools import partial
from itertools import groupby

from barnabas.controller import acls as decisions
from barnabas.handlers.authorization import (
    ALTER_CLUSTER,
    DESCRIBE_CLUSTER,
    note_change,
    require,
)
from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.metadata.acl_filter import AclFilter
from barnabas.metadata.security_records import AclAdded
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from barnabas.security.audit import acl_facts

ID_BYTES = 16


def handle_create(
    node: Node, request: CreateAclsRequest, context: RequestContext
) -> CreateAclsResponse | Pending[CreateAclsResponse]:
    """Create ACLs."""

    def decide() -> Pending[CreateAclsResponse]:
        _require_authorizer(node)
        require(node, context, ALTER_CLUSTER)
        decisions.check_level(node.draft)
        wanted = [_acl(creation) for creation in request.creations]
        created = decisions.create_acls(node.draft, wanted, partial(_new_id, node))
        results = [_created(problem) for problem in created.problems]
        committed = node.commit(created.records, context.now_ms)
        for record in created.records:
            note_change(node, context, "ACL created", {"acl": acl_facts(record)})
        return committed.map(lambda _: CreateAclsResponse(results=results))

    return decided(
        decide, lambda error: CreateAclsResponse(results=[_created(error)] * len(request.creations))
    )


def handle_describe(
    node: Node, request: DescribeAclsRequest, context: RequestContext
) -> DescribeAclsResponse:
    """Return the ACLs that a filter matches, by resource pattern."""
    wanted = AclFilter(
        resource_type=request.resource_type_filter,
        resource_name=request.resource_name_filter,
        pattern_type=request.pattern_type_filter,
        principal=request.principal_filter,
        host=request.host_filter,
        operation=request.operation,
        permission_type=request.permission_type,
    )
    try:
        _require_authorizer(node)
        require(node, context, DESCRIBE_CLUSTER)
        if wanted.problem is not None:
            raise ApiError(ErrorCode.INVALID_REQUEST, wanted.problem)  # noqa: TRY301
    except ApiError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    found = sorted(wanted.among(node.image.security.acls.values()), key=_pattern)
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[
                    AclDescription(
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission_type,
                    )
                    for acl in of_pattern
                ],
            )
            for (resource_type, name, pattern_type), of_pattern in groupby(found, _pattern)
        ],
    )


def handle_delete(
    node: Node, request: DeleteAclsRequest, context: RequestContext
) -> DeleteAclsResponse | Pending[DeleteAclsResponse]:
    """Delete the ACLs that filters match."""

    def decide() -> Pending[DeleteAclsResponse]:
        _require_authorizer(node)
        require(node, context, ALTER_CLUSTER)
        decisions.check_level(node.draft)
        known = node.draft.security.acls
        deleted = decisions.delete_acls(node.draft, [_filter(each) for each in request.filters])
        gone = [known[record.acl_id] for record in deleted.records]
        committed = node.commit(deleted.records, context.now_ms)
        for acl in gone:
            note_change(node, context, "ACL deleted", {"acl": acl_facts(acl)})
        results = [_deleted(result) for result in deleted.results]
        return committed.map(lambda _: DeleteAclsResponse(filter_results=results))

    return decided(
        decide,
        lambda error: DeleteAclsResponse(filter_results=[_deleted(error)] * len(request.filters)),
    )


def _require_authorizer(node: Node) -> None:
    if node.authorizer is None:
        raise ApiError(
            ErrorCode.SECURITY_DISABLED,
            "there is no authorizer; set security.authorizer to acl on every broker",
        )


def _acl(creation: AclCreation) -> AclAdded:
    return AclAdded(
        acl_id="",
        resource_type=creation.resource_type,
        pattern_type=creation.resource_pattern_type,
        resource_name=creation.resource_name,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )


def _filter(wanted: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        resource_type=wanted.resource_type_filter,
        resource_name=wanted.resource_name_filter,
        pattern_type=wanted.pattern_type_filter,
        principal=wanted.principal_filter,
        host=wanted.host_filter,
        operation=wanted.operation,
        permission_type=wanted.permission_type,
    )


def _pattern(acl: AclAdded) -> tuple[int, str, int]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


def _created(problem: ApiError | None) -> AclCreationResult:
    if problem is None:
        return AclCreationResult(error_message=None)
    return AclCreationResult(error_code=problem.code, error_message=problem.message)


def _deleted(result: list[AclAdded] | ApiError) -> DeleteAclsFilterResult:
    if isinstance(result, ApiError):
        return DeleteAclsFilterResult(error_code=result.code, error_message=result.message)
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in result
        ],
    )


def _new_id(node: Node) -> str:
    return node.rng.randbytes(ID_BYTES).hex()
