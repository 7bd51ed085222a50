"""The rows of the APIs by which brokers reach share coordinators (KIP-932)."""

from barnabas.handlers.rows.needs import CLUSTER_ACTION
from barnabas.handlers.rows.row import Api, Row
from barnabas.handlers.share import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from barnabas.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from barnabas.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

SHARE_STATE_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        0,
        0,
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateResponse,
        initialize_share_group_state.handle,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.READ_SHARE_GROUP_STATE,
        0,
        0,
        ReadShareGroupStateRequest,
        ReadShareGroupStateResponse,
        read_share_group_state.handle,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        0,
        1,
        WriteShareGroupStateRequest,
        WriteShareGroupStateResponse,
        write_share_group_state.handle,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.DELETE_SHARE_GROUP_STATE,
        0,
        0,
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
        delete_share_group_state.handle,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        0,
        1,
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryResponse,
        read_share_group_state_summary.handle,
        needs=(CLUSTER_ACTION,),
    ),
)
