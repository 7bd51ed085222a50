"""Roles over the wire: a separate type of config resource.

Kafka has no API for roles. A role is a config resource of type 100, with one config, `members`: a
list of principals. So IncrementalAlterConfigs adds and removes members on the controller, without
a race between two administrators, with `validate_only` as a dry run; DescribeConfigs and
ListConfigResources (if it names the type) show them. Clients that do not know the type never see
it. Changing a role needs ALTER on the cluster, as changing an ACL does. Describing one needs
DESCRIBE on the cluster.
"""

from collections.abc import Iterator, Sequence

from barnabas.controller.acls import altered_role
from barnabas.controller.configs import Change
from barnabas.handlers.authorization import note_change
from barnabas.handlers.context import RequestContext
from barnabas.metadata.config_definition import ConfigType
from barnabas.metadata.security_records import RoleChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_configs import DescribeConfigsResourceResult

MEMBERS = "members"
ROLE_SOURCE = 0
"""Kafka's code for a config of unknown source."""


def alter(node: Node, role: str, changes: Sequence[Change]) -> RoleChanged:
    """Return the record that changes a role as a request asks."""
    if node.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "security.authorizer is none on this broker")
    return altered_role(node.draft, role, changes)


def describe(node: Node, role: str) -> Iterator[DescribeConfigsResourceResult]:
    """Return the members of a role."""
    if node.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "security.authorizer is none on this broker")
    members = node.image.security.roles.get(role, [])
    yield DescribeConfigsResourceResult(
        name=MEMBERS,
        value=",".join(members),
        config_source=ROLE_SOURCE,
        synonyms=[],
        config_type=ConfigType.LIST,
        documentation="The principals that have this role.",
    )


def note(node: Node, context: RequestContext, records: Sequence[RoleChanged]) -> None:
    """Write changes of roles to the audit log."""
    for record in records:
        facts = {"role": record.role, "members": list(record.members)}
        note_change(node, context, "role altered", {**facts})
