"""How handlers reach the coordinators, and how every refusal becomes an answer."""

from collections.abc import Callable
from typing import TypeVar

from barnabas.groups.machine import GroupMachine
from barnabas.handlers.context import RequestContext
from barnabas.model.coordination import Caller, Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node

R = TypeVar("R")

COORDINATORS_TROUBLE = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""A full disk; a controller that cannot be asked for the coordinators' topic."""


def caller_of(context: RequestContext) -> Caller:
    """Return who asks, as coordinators want to know it."""
    return Caller(
        context.client_id or "", f"/{context.client_host}", context.version, context.now_ms
    )


def ask_group(
    node: Node,
    group_id: str,
    operation: Callable[[GroupMachine], Outcome[R]],
    refused: Callable[[ErrorCode], R],
) -> R | Pending[R]:
    """Have a group's coordinator carry out an operation."""
    try:
        shard = node.coordinators.groups.shard_for(group_id)
        return shard.run(lambda: operation(shard.machine)).or_refused(refused)
    except ApiError as error:
        return refused(retriable(error.code))


def retriable(code: ErrorCode) -> ErrorCode:
    """Return what a client should be told: trouble behind the coordinator is the coordinator's."""
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if code in COORDINATORS_TROUBLE else code
