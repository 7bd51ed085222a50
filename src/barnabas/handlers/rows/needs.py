"""The permissions that rows name, as constants that read like Kafka's table of operations."""

from barnabas.model.permissions import Operation, ResourceType, need

READ_TOPIC = need(Operation.READ, ResourceType.TOPIC)
WRITE_TOPIC = need(Operation.WRITE, ResourceType.TOPIC)
CREATE_TOPIC = need(Operation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC = need(Operation.DELETE, ResourceType.TOPIC)
ALTER_TOPIC = need(Operation.ALTER, ResourceType.TOPIC)
DESCRIBE_TOPIC = need(Operation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_CONFIGS_TOPIC = need(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC)
ALTER_CONFIGS_TOPIC = need(Operation.ALTER_CONFIGS, ResourceType.TOPIC)

READ_GROUP = need(Operation.READ, ResourceType.GROUP)
DELETE_GROUP = need(Operation.DELETE, ResourceType.GROUP)
DESCRIBE_GROUP = need(Operation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_CONFIGS_GROUP = need(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP)
ALTER_CONFIGS_GROUP = need(Operation.ALTER_CONFIGS, ResourceType.GROUP)

WRITE_TRANSACTIONAL_ID = need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTIONAL_ID = need(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)

DELETE_CLUSTER = need(Operation.DELETE, ResourceType.CLUSTER)
CREATE_CLUSTER = need(Operation.CREATE, ResourceType.CLUSTER)
ALTER_CLUSTER = need(Operation.ALTER, ResourceType.CLUSTER)
DESCRIBE_CLUSTER = need(Operation.DESCRIBE, ResourceType.CLUSTER)
CLUSTER_ACTION = need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
DESCRIBE_CONFIGS_CLUSTER = need(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
ALTER_CONFIGS_CLUSTER = need(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
IDEMPOTENT_WRITE_CLUSTER = need(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)

CREATE_TOKENS_USER = need(Operation.CREATE_TOKENS, ResourceType.USER)
DESCRIBE_TOKENS_USER = need(Operation.DESCRIBE_TOKENS, ResourceType.USER)
DESCRIBE_TOKEN = need(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN)

DESCRIBE_CONFIGS = DESCRIBE_CONFIGS_TOPIC | DESCRIBE_CONFIGS_GROUP | DESCRIBE_CONFIGS_CLUSTER
"""On a topic or a group; on the cluster for every other resource."""
ALTER_CONFIGS = ALTER_CONFIGS_TOPIC | ALTER_CONFIGS_GROUP | ALTER_CONFIGS_CLUSTER
