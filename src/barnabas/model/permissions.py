"""What an authorizer grants: operations on resources, with the names and codes of Kafka's ACLs.

A row of the registry (`handlers/rows/`) names what its API needs. A `Need` is met by any one of its
permissions. An API has all of its needs, each for the part of the request that it concerns: a
Produce request without a transactional id needs no permission for one, and a Metadata request needs
CREATE only where it creates a topic.
"""

from dataclasses import dataclass
from enum import IntEnum


class Operation(IntEnum):
    """What a principal does to a resource."""

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


class ResourceType(IntEnum):
    """What a principal does something to."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


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
