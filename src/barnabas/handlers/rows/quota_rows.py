"""The rows of the APIs that describe and alter client quotas."""

from barnabas.handlers.admin import alter_client_quotas, describe_client_quotas
from barnabas.handlers.rows.needs import ALTER_CONFIGS_CLUSTER, DESCRIBE_CONFIGS_CLUSTER
from barnabas.handlers.rows.row import Api, Row
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

QUOTA_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        0,
        1,
        DescribeClientQuotasRequest,
        DescribeClientQuotasResponse,
        describe_client_quotas.handle,
        needs=(DESCRIBE_CONFIGS_CLUSTER,),
    ),
    Api(
        ApiKey.ALTER_CLIENT_QUOTAS,
        0,
        1,
        AlterClientQuotasRequest,
        AlterClientQuotasResponse,
        alter_client_quotas.handle,
        needs=(ALTER_CONFIGS_CLUSTER,),
        is_forwarded=True,
    ),
)
