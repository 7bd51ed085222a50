"""The rows of the APIs for ACLs."""

from barnabas.handlers.admin import acl_apis
from barnabas.handlers.rows.needs import ALTER_CLUSTER, DESCRIBE_CLUSTER
from barnabas.handlers.rows.row import Api, Row
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

ACL_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.DESCRIBE_ACLS,
        1,
        3,
        DescribeAclsRequest,
        DescribeAclsResponse,
        acl_apis.handle_describe,
        needs=(DESCRIBE_CLUSTER,),
    ),
    Api(
        ApiKey.CREATE_ACLS,
        1,
        3,
        CreateAclsRequest,
        CreateAclsResponse,
        acl_apis.handle_create,
        needs=(ALTER_CLUSTER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.DELETE_ACLS,
        1,
        3,
        DeleteAclsRequest,
        DeleteAclsResponse,
        acl_apis.handle_delete,
        needs=(ALTER_CLUSTER,),
        is_forwarded=True,
    ),
)
