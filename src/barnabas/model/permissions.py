"""What an authorizer grants: operations on resources, with the names and codes of Kafka's ACLs.

A row of the registry (`handlers/rows/`) names what its API needs. A `Need` is met by any one of its
permissions. An API has all of its needs, each for the part of the request that it concerns: a
Produce request without a transactional id needs no permission for one, and a Metadata request needs
CREATE only where it creates a topic.
"""

from dataclasses import dataclass
from enum import IntEnum


class Operation(IntEnum):
    """What a principal does to a resource. ANY is for filters; ALL implies every other one."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """What a principal does something to. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How an ACL names resources. ANY and MATCH are for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    """Whether an ACL allows or denies. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""

Permission = tuple[Operation, ResourceType]


@dataclass(frozen=True, slots=True)
class Need:
    """One of these permissions."""

    permissions: frozenset[Permission]

    def __or__(self, other: "Need") -> "Need":
        return Need(self.permissions | other.permissions)


def need(operation: Operation, resource: ResourceType) -> Need:
    """Return the need for one permission."""
    return Need(frozenset({(operation, resource)}))


@dataclass(frozen=True, slots=True)
class Right:
    """One operation on one type of resource, as a handler asks for it."""

    operation: Operation
    resource: ResourceType
    bit: int
    """The bit of the operation in a set of operations; a plain number, which is fast to compare."""
    code: int
    """A number that no other right has."""


def right(operation: Operation, resource: ResourceType) -> Right:
    """Return the right to an operation on a type of resource."""
    return Right(operation, resource, 1 << operation, operation << 4 | resource)


SUPPORTED_OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""What `authorized_operations` reports about each type of resource."""
