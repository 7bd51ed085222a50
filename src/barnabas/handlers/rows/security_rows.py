"""The rows of the APIs about security."""

from barnabas.handlers.rows.needs import (
    ALTER_CLUSTER,
    CREATE_TOKENS_USER,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOKEN,
    DESCRIBE_TOKENS_USER,
)
from barnabas.handlers.rows.row import Api, Row
from barnabas.handlers.security import (
    alter_user_scram_credentials,
    create_delegation_token,
    describe_delegation_token,
    describe_user_scram_credentials,
    expire_delegation_token,
    renew_delegation_token,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

SECURITY_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        0,
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
        alter_user_scram_credentials.handle,
        needs=(ALTER_CLUSTER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        0,
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
        describe_user_scram_credentials.handle,
        needs=(DESCRIBE_CLUSTER,),
    ),
    Api(
        ApiKey.CREATE_DELEGATION_TOKEN,
        1,
        3,
        CreateDelegationTokenRequest,
        CreateDelegationTokenResponse,
        create_delegation_token.handle,
        needs=(CREATE_TOKENS_USER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.RENEW_DELEGATION_TOKEN,
        1,
        2,
        RenewDelegationTokenRequest,
        RenewDelegationTokenResponse,
        renew_delegation_token.handle,
        needs=(),
        is_forwarded=True,
    ),
    Api(
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        1,
        2,
        ExpireDelegationTokenRequest,
        ExpireDelegationTokenResponse,
        expire_delegation_token.handle,
        needs=(),
        is_forwarded=True,
    ),
    Api(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        1,
        3,
        DescribeDelegationTokenRequest,
        DescribeDelegationTokenResponse,
        describe_delegation_token.handle,
        needs=(DESCRIBE_TOKEN | DESCRIBE_TOKENS_USER,),
    ),
)
