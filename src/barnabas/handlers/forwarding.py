"""Requests that only the active controller can decide: any broker takes them and passes them on.

The body goes to the controller as it came, and its answer comes back as it is, under the asker's
correlation id. A controller of an older release is asked in a version that it serves; where that
cannot say what the client said, the client is told UNSUPPORTED_VERSION. Where there is no
controller, or it is lost before it answers, the asker is told NOT_CONTROLLER in the API's own form
and asks again; whether it was carried out is not known then. A broker that was taken for the
controller and is not refuses in the same way: nothing is passed on twice.
"""

from collections.abc import Callable
from typing import Any

from barnabas.handlers.admin.alter_configs import Resource
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, response_class
from barnabas.protocol.codec import encoder
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_configs, incremental_alter_configs
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TIMEOUT_MS = 10_000
MEMBERSHIP_TIMEOUT_MS = 60_000
"""A voter is taken in once it has caught up."""

FORWARDED = {
    ApiKey.CREATE_TOPICS: "CreateTopics",
    ApiKey.DELETE_TOPICS: "DeleteTopics",
    ApiKey.ALTER_CONFIGS: "AlterConfigs",
    ApiKey.CREATE_PARTITIONS: "CreatePartitions",
    ApiKey.ELECT_LEADERS: "ElectLeaders",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "IncrementalAlterConfigs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "AlterPartitionReassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "ListPartitionReassignments",
    ApiKey.DESCRIBE_QUORUM: "DescribeQuorum",
    ApiKey.UPDATE_FEATURES: "UpdateFeatures",
    ApiKey.UNREGISTER_BROKER: "UnregisterBroker",
    ApiKey.ADD_RAFT_VOTER: "AddRaftVoter",
    ApiKey.REMOVE_RAFT_VOTER: "RemoveRaftVoter",
}

NOT_HERE = "this broker is not the controller, and the controller did not answer; try again"


def belongs_elsewhere(node: Node, api_key: int) -> bool:
    """Tell whether somebody else must decide on a request."""
    return api_key in FORWARDED and not node.is_controller


def pass_on(node: Node, header: RequestHeader, request: Message, body: bytes) -> Pending[bytes]:
    """Have the controller answer a request; return the body of the answer."""
    answer: Pending[bytes] = Pending()
    controller = node.controller_id
    if controller is None:
        answer.complete(refuse(header, request))
        return answer
    slow = header.api_key in (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER)
    asked = node.peers.pass_on(
        controller,
        header.api_key,
        header.api_version,
        body,
        request=request,
        timeout_ms=MEMBERSHIP_TIMEOUT_MS if slow else TIMEOUT_MS,
    )
    asked.when_done(
        answer.complete,
        lambda error: answer.complete_with(
            lambda: refuse(header, request, error if isinstance(error, ApiError) else None)
        ),
    )
    return answer


def refuse(header: RequestHeader, request: Message, reason: ApiError | None = None) -> bytes:
    """Return the body of an answer that sends the asker to the controller, or tells a reason."""
    key, version = header.api_key, header.api_version
    write = _ITEM_BY_ITEM.get(APIS[key].name)
    if write is not None and not (isinstance(request, ElectLeadersRequest) and version > 0):
        response = write(request)
    else:
        response = response_class(key)()
        response.error_code = ErrorCode.NOT_CONTROLLER  # type: ignore[attr-defined]
    if reason is not None:
        _give_reason(response, reason)
    return encoder(type(response), version)(response)


def _give_reason(message: Any, reason: ApiError) -> None:  # noqa: ANN401 - any part of an answer
    """Put another error wherever an answer says NOT_CONTROLLER."""
    if getattr(message, "error_code", None) == ErrorCode.NOT_CONTROLLER:
        message.error_code = reason.code
        if hasattr(message, "error_message"):
            message.error_message = reason.message
    for name in message.__slots__:
        value = getattr(message, name)
        for part in value if isinstance(value, list) else ():
            if isinstance(part, Message):
                _give_reason(part, reason)


def _create_topics(request: CreateTopicsRequest) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(
                name=topic.name, error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_HERE
            )
            for topic in request.topics
        ]
    )


def _delete_topics(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=ErrorCode.NOT_CONTROLLER,
                error_message=NOT_HERE,
            )
            for topic in wanted
        ]
    )


def _create_partitions(request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=topic.name, error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_HERE
            )
            for topic in request.topics
        ]
    )


def _alter_configs(request: AlterConfigsRequest) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            alter_configs.AlterConfigsResourceResponse(**_refused(resource))
            for resource in request.resources
        ]
    )


def _incremental(request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(**_refused(resource))
            for resource in request.resources
        ]
    )


def _refused(resource: Resource) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.NOT_CONTROLLER,
        "error_message": NOT_HERE,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def _elect_leaders(request: ElectLeadersRequest) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=number,
                        error_code=ErrorCode.NOT_CONTROLLER,
                        error_message=NOT_HERE,
                    )
                    for number in topic.partitions
                ],
            )
            for topic in request.topic_partitions or []
        ]
    )


_ITEM_BY_ITEM: dict[str, Callable[[Any], Message]] = {
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "CreatePartitions": _create_partitions,
    "AlterConfigs": _alter_configs,
    "IncrementalAlterConfigs": _incremental,
    "ElectLeaders": _elect_leaders,
}
"""APIs that have no error code of their own, only one for each thing they were asked for."""
