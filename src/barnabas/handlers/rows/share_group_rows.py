"""The rows of the APIs for members and offsets of share groups."""

from barnabas.handlers.rows.needs import (
    DELETE_GROUP,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
    READ_TOPIC,
)
from barnabas.handlers.rows.row import Api, Row
from barnabas.handlers.share import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    share_group_describe,
    share_group_heartbeat,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

SHARE_GROUP_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        1,
        ShareGroupHeartbeatRequest,
        ShareGroupHeartbeatResponse,
        share_group_heartbeat.handle,
        needs=(READ_GROUP, DESCRIBE_TOPIC),
    ),
    Api(
        ApiKey.SHARE_GROUP_DESCRIBE,
        1,
        1,
        ShareGroupDescribeRequest,
        ShareGroupDescribeResponse,
        share_group_describe.handle,
        needs=(DESCRIBE_GROUP, DESCRIBE_TOPIC),
    ),
    Api(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        0,
        1,
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsResponse,
        describe_share_group_offsets.handle,
        needs=(DESCRIBE_GROUP, DESCRIBE_TOPIC),
    ),
    Api(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        0,
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsResponse,
        alter_share_group_offsets.handle,
        needs=(READ_GROUP, READ_TOPIC),
    ),
    Api(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        0,
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsResponse,
        delete_share_group_offsets.handle,
        needs=(DELETE_GROUP, READ_TOPIC),
    ),
)
