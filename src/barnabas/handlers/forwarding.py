"""Forwards requests that only the active controller can decide.

Clients may send such a request to any broker. The broker forwards the body unchanged, in an
Envelope that names the client, and returns the controller's response under the client's correlation
id. A controller of an older release receives the request in a version that it serves, and without
an Envelope if it does not serve that. If no such version can express the request, the client
receives UNSUPPORTED_VERSION.

Without a controller, or if the connection to it breaks before it answers, the client receives
NOT_CONTROLLER in the form of its API, and retries. The request may or may not have been carried out
then. A broker that receives a forwarded request and is not the controller refuses it in the same
way: no request is forwarded twice.
"""

from collections.abc import Callable
from typing import Any

from barnabas.handlers.admin.alter_client_quotas import answer_of
from barnabas.handlers.admin.alter_configs import Resource
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.cluster.peer_requests import ForwardedRequest
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import response_class
from barnabas.protocol.codec import encoder
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_configs, incremental_alter_configs
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
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
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
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
"""The controller adds a voter once it has caught up."""

NOT_HERE = "this broker is not the controller, and the controller did not answer; try again"


def forward(node: Node, forwarded: ForwardedRequest) -> Pending[bytes]:
    """Have the controller answer a request; return the body of the response."""
    header, request = forwarded.header, forwarded.request
    answer: Pending[bytes] = Pending()
    controller = node.controller_id
    if controller is None:
        answer.complete(refuse(header, request))
        return answer
    slow = header.api_key in (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER)
    timeout_ms = MEMBERSHIP_TIMEOUT_MS if slow else TIMEOUT_MS
    # Without its client's identity the controller would carry it out with this broker's rights.
    needs_envelope = node.authorizer is not None
    asked = node.peers.forward(controller, forwarded, timeout_ms, needs_envelope=needs_envelope)
    asked.when_done(
        answer.complete,
        lambda error: answer.complete_with(
            lambda: refuse(header, request, error if isinstance(error, ApiError) else None)
        ),
    )
    return answer


def refuse(header: RequestHeader, request: Message, reason: ApiError | None = None) -> bytes:
    """Return the body of a response with NOT_CONTROLLER, or with another reason."""
    version = header.api_version
    response = _item_by_item(request, version)
    if response is None:
        response = response_class(header.api_key)()
        response.error_code = ErrorCode.NOT_CONTROLLER  # type: ignore[attr-defined]
    if reason is not None:
        _give_reason(response, reason)
    return encoder(type(response), version)(response)


def _item_by_item(request: Message, version: int) -> Message | None:
    """Return the refusal by an API whose response has only the error codes of its items."""
    if isinstance(request, ElectLeadersRequest) and version > 0:
        return None
    refuse_items = _ITEM_BY_ITEM.get(type(request))
    return None if refuse_items is None else refuse_items(request)


def _give_reason(message: Any, reason: ApiError) -> None:  # noqa: ANN401 - any part of an answer
    """Replace NOT_CONTROLLER by another error in all parts of a response."""
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


def _alter_client_quotas(request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    error = ApiError(ErrorCode.NOT_CONTROLLER, NOT_HERE)
    return AlterClientQuotasResponse(entries=[answer_of(each, error) for each in request.entries])


def _alter_credentials(
    request: AlterUserScramCredentialsRequest,
) -> AlterUserScramCredentialsResponse:
    deleted = [item.name for item in request.deletions]
    users = dict.fromkeys([*deleted, *(item.name for item in request.upsertions)])
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user, error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_HERE
            )
            for user in users
        ]
    )


def _refused(resource: Resource) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.NOT_CONTROLLER,
        "error_message": NOT_HERE,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def _create_acls(request: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_HERE)
            for _ in request.creations
        ]
    )


def _delete_acls(request: DeleteAclsRequest) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_HERE)
            for _ in request.filters
        ]
    )


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


_ITEM_BY_ITEM: dict[type[Message], Callable[[Any], Message]] = {
    CreateTopicsRequest: _create_topics,
    DeleteTopicsRequest: _delete_topics,
    CreatePartitionsRequest: _create_partitions,
    AlterConfigsRequest: _alter_configs,
    IncrementalAlterConfigsRequest: _incremental,
    CreateAclsRequest: _create_acls,
    DeleteAclsRequest: _delete_acls,
    AlterClientQuotasRequest: _alter_client_quotas,
    AlterUserScramCredentialsRequest: _alter_credentials,
    ElectLeadersRequest: _elect_leaders,
}
