"""Responses that tell a client to pause (KIP-219).

A response says for how long the broker does not read the connection. If several quotas apply, the
longest pause counts. The time of the event loop that a client uses (`request_percentage`) is
charged once its event is over (`server/connection.py`), and so the next response has the pause.

Most responses have the field `throttle_time_ms`, which is set as they are encoded. Produce and
Fetch set their own.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import TypeVar

from barnabas.handlers.context import RequestContext
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.protocol.apis import response_class
from barnabas.protocol.codec import encoder
from barnabas.protocol.message import Message
from barnabas.security.client_quotas import QuotaKind

R = TypeVar("R", bound=Message)
E = TypeVar("E", bytes, list[Chunk])
THROTTLE_FIELD = "throttle_time_ms"
_TIME = Struct(">i")
_MARK = 0x5A17C0DE
"""A pause that never occurs in a response."""


def begin(node: Node, context: RequestContext) -> None:
    """Find the quota of a client, and for how long it must already pause."""
    context.quota = node.quotas.of(context.caller.principal.name, context.client_id)
    if node.quotas.times_requests:
        context.throttle_ms = context.quota.request_debt_ms(node.timers.now_ms)


def pause_at_least(context: RequestContext, duration_ms: int) -> None:
    """Make the client pause for at least this time; the longest pause counts."""
    context.throttle_ms = max(context.throttle_ms, duration_ms)


def debt_now_ms(node: Node, context: RequestContext, kind: QuotaKind) -> int:
    """Return for how long a client must pause now, for a quota or for the time that it used."""
    quota, now_ms = context.quota, node.timers.now_ms
    if quota is None:
        return 0
    debt_ms = quota.debt_ms(kind, now_ms)
    if node.quotas.times_requests:
        debt_ms = max(debt_ms, quota.request_debt_ms(now_ms))
    return debt_ms


def pacing(node: Node, context: RequestContext, encode: Callable[[R], E]) -> Callable[[R], E]:
    """Return a function that encodes a response with the pause that it imposes."""
    arrived_ms = node.timers.now_ms

    def encode_with_pause(response: R) -> E:
        # The later the response, the shorter the rest of the pause.
        waited_ms = node.timers.now_ms - arrived_ms
        if waited_ms and context.throttle_ms:
            context.throttle_ms = max(0, context.throttle_ms - waited_ms)
        if not context.throttle_ms or not hasattr(response, THROTTLE_FIELD):
            return encode(response)
        before: int = getattr(response, THROTTLE_FIELD)
        setattr(response, THROTTLE_FIELD, max(before, context.throttle_ms))
        encoded = encode(response)
        setattr(response, THROTTLE_FIELD, before)  # several answers may share it
        return encoded

    return encode_with_pause


def relay(context: RequestContext, api_key: int, version: int, body: bytes) -> bytes:
    """Return the controller's response to the client, with the longer pause of both brokers."""
    if not _begins_with_pause(api_key, version):
        return body
    (told_ms,) = _TIME.unpack_from(body)
    pause_at_least(context, told_ms)
    if context.throttle_ms == told_ms:
        return body
    return _TIME.pack(context.throttle_ms) + body[_TIME.size :]


@cache
def _begins_with_pause(api_key: int, version: int) -> bool:
    """Tell whether the first field of a response is its pause."""
    response = response_class(api_key)()
    if not hasattr(response, THROTTLE_FIELD):
        return False
    setattr(response, THROTTLE_FIELD, _MARK)
    return encoder(type(response), version)(response).startswith(_TIME.pack(_MARK))
