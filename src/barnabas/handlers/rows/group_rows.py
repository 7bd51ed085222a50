"""The rows of the APIs for groups and their offsets."""

from barnabas.handlers.groups import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from barnabas.handlers.rows.needs import (
    CLUSTER_ACTION,
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    READ_GROUP,
    READ_TOPIC,
)
from barnabas.handlers.rows.row import Api, Row
from barnabas.handlers.shapes import CallerShapes
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

GROUP_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.OFFSET_COMMIT,
        2,
        10,
        OffsetCommitRequest,
        OffsetCommitResponse,
        offset_commit.handle,
        needs=(READ_GROUP, READ_TOPIC),
        learn=CallerShapes.learn_commit,
    ),
    Api(
        ApiKey.OFFSET_FETCH,
        1,
        10,
        OffsetFetchRequest,
        OffsetFetchResponse,
        offset_fetch.handle,
        needs=(DESCRIBE_GROUP, DESCRIBE_TOPIC),
    ),
    Api(
        ApiKey.FIND_COORDINATOR,
        0,
        6,
        FindCoordinatorRequest,
        FindCoordinatorResponse,
        find_coordinator.handle,
        needs=(DESCRIBE_GROUP | DESCRIBE_TRANSACTIONAL_ID | CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.JOIN_GROUP,
        0,
        9,
        JoinGroupRequest,
        JoinGroupResponse,
        join_group.handle,
        needs=(READ_GROUP,),
    ),
    Api(
        ApiKey.HEARTBEAT,
        0,
        4,
        HeartbeatRequest,
        HeartbeatResponse,
        heartbeat.handle,
        needs=(READ_GROUP,),
    ),
    Api(
        ApiKey.LEAVE_GROUP,
        0,
        5,
        LeaveGroupRequest,
        LeaveGroupResponse,
        leave_group.handle,
        needs=(READ_GROUP,),
    ),
    Api(
        ApiKey.SYNC_GROUP,
        0,
        5,
        SyncGroupRequest,
        SyncGroupResponse,
        sync_group.handle,
        needs=(READ_GROUP,),
    ),
    Api(
        ApiKey.DESCRIBE_GROUPS,
        0,
        6,
        DescribeGroupsRequest,
        DescribeGroupsResponse,
        describe_groups.handle,
        needs=(DESCRIBE_GROUP,),
    ),
    Api(
        ApiKey.LIST_GROUPS,
        0,
        5,
        ListGroupsRequest,
        ListGroupsResponse,
        list_groups.handle,
        needs=(DESCRIBE_CLUSTER | DESCRIBE_GROUP,),
    ),
    Api(
        ApiKey.DELETE_GROUPS,
        0,
        2,
        DeleteGroupsRequest,
        DeleteGroupsResponse,
        delete_groups.handle,
        needs=(DELETE_GROUP,),
    ),
    Api(
        ApiKey.OFFSET_DELETE,
        0,
        0,
        OffsetDeleteRequest,
        OffsetDeleteResponse,
        offset_delete.handle,
        needs=(DELETE_GROUP, READ_TOPIC),
    ),
    Api(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        0,
        1,
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
        consumer_group_heartbeat.handle,
        needs=(READ_GROUP, DESCRIBE_TOPIC),
    ),
    Api(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        0,
        1,
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
        consumer_group_describe.handle,
        needs=(DESCRIBE_GROUP, DESCRIBE_TOPIC),
    ),
)
