"""The quota for changes of topics (`controller_mutation_rate`, KIP-599).

Each partition that is created or deleted takes a permit. The controller charges the client of the
request, also where another broker forwards it. A client that is over its quota is refused topic by
topic with THROTTLING_QUOTA_EXCEEDED, from the version on in which its API knows that error. An
older version is served, and its connection paused.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.throttled_responses import pause_at_least
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.security.client_quotas import QuotaKind


class MutationPermits:
    """The permits of one request."""

    def __init__(
        self, node: Node, context: RequestContext, *, strict_from: int, is_dry_run: bool = False
    ) -> None:
        self._timers = node.timers
        self._context = context
        self._is_strict = context.version >= strict_from
        self._quota = None if is_dry_run else context.quota

    def take(self, partitions: int) -> None:
        """Charge some partitions; raise if the client is already over its quota."""
        if self._quota is None:
            return
        now_ms = self._timers.now_ms
        debt_ms = self._quota.debt_ms(QuotaKind.MUTATION, now_ms)
        if debt_ms and self._is_strict:
            pause_at_least(self._context, debt_ms)
            raise ApiError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"the client is over its controller_mutation_rate; try again in {debt_ms} ms",
            )
        debt_ms = self._quota.use(QuotaKind.MUTATION, partitions, now_ms)
        if not self._is_strict:
            pause_at_least(self._context, debt_ms)
