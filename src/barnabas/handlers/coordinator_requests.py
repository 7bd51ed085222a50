"""Runs operations on coordinators for handlers, and turns refusals into responses."""

from collections.abc import Callable
from typing import TypeVar

from barnabas.groups.group_machine import GroupMachine
from barnabas.handlers.context import RequestContext
from barnabas.model.coordination import Caller, Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node

R = TypeVar("R")

COORDINATOR_FAILURES = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""A full disk, or no controller that could create the coordinators' topic."""


def caller_of(context: RequestContext) -> Caller:
    """Return the caller in the form that coordinators use."""
    return Caller(
        context.client_id or "", f"/{context.caller.host}", context.version, context.now_ms
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
    """Return the error for a client: a failure behind the coordinator becomes its own."""
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if code in COORDINATOR_FAILURES else code
