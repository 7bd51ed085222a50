"""The rows of the APIs that administer topics, configs and replicas."""

from barnabas.handlers.admin import (
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
    describe_log_dirs,
    elect_leaders,
    list_config_resources,
    list_partition_reassignments,
)
from barnabas.handlers.rows.needs import (
    ALTER_CLUSTER,
    ALTER_CONFIGS,
    ALTER_TOPIC,
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DELETE_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_CONFIGS_CLUSTER,
    DESCRIBE_CONFIGS_TOPIC,
)
from barnabas.handlers.rows.row import Api, Row
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

ADMIN_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.CREATE_TOPICS,
        2,
        7,
        CreateTopicsRequest,
        CreateTopicsResponse,
        create_topics.handle,
        needs=(CREATE_CLUSTER | CREATE_TOPIC, DESCRIBE_CONFIGS_TOPIC),
        is_forwarded=True,
        is_of_brokers=True,
    ),
    Api(
        ApiKey.DELETE_TOPICS,
        1,
        6,
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        delete_topics.handle,
        needs=(DELETE_TOPIC | DELETE_CLUSTER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.CREATE_PARTITIONS,
        0,
        3,
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        create_partitions.handle,
        needs=(ALTER_TOPIC,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.DESCRIBE_CONFIGS,
        1,
        4,
        DescribeConfigsRequest,
        DescribeConfigsResponse,
        describe_configs.handle,
        needs=(DESCRIBE_CONFIGS,),
    ),
    Api(
        ApiKey.ALTER_CONFIGS,
        0,
        2,
        AlterConfigsRequest,
        AlterConfigsResponse,
        alter_configs.handle,
        needs=(ALTER_CONFIGS,),
        is_forwarded=True,
        refuse_here=alter_configs.refuse_here,
    ),
    Api(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        0,
        1,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
        alter_configs.handle_incremental,
        needs=(ALTER_CONFIGS,),
        is_forwarded=True,
        refuse_here=alter_configs.refuse_incremental_here,
    ),
    Api(
        ApiKey.LIST_CONFIG_RESOURCES,
        0,
        1,
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
        list_config_resources.handle,
        needs=(DESCRIBE_CONFIGS_CLUSTER,),
    ),
    Api(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        1,
        2,
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirsResponse,
        alter_replica_log_dirs.handle,
        needs=(ALTER_CLUSTER,),
    ),
    Api(
        ApiKey.DESCRIBE_LOG_DIRS,
        1,
        5,
        DescribeLogDirsRequest,
        DescribeLogDirsResponse,
        describe_log_dirs.handle,
        needs=(DESCRIBE_CLUSTER,),
    ),
    Api(
        ApiKey.ELECT_LEADERS,
        0,
        2,
        ElectLeadersRequest,
        ElectLeadersResponse,
        elect_leaders.handle,
        needs=(ALTER_CLUSTER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        0,
        1,
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        alter_partition_reassignments.handle,
        needs=(ALTER_CLUSTER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        0,
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
        list_partition_reassignments.handle,
        needs=(DESCRIBE_CLUSTER,),
        is_forwarded=True,
    ),
)
