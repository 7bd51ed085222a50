"""ListTransactions (key 66), versions 0 to 2: filters by state and producer id, by how long ago the
transaction began from version 1 (KIP-994), by a pattern of the id from version 2 (KIP-1152).

Unknown states are listed in the response and match nothing, as in Kafka. The pattern must
match the whole id; see `model/name_pattern.py` for how it differs from Kafka's.
"""

from collections.abc import Callable
from functools import partial

from barnabas.handlers.answers import all_of
from barnabas.handlers.authorization import DESCRIBE_TRANSACTIONAL_ID, is_hidden
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.name_pattern import NamePattern, PatternError
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from barnabas.transactions.state import STATES, Transaction
from barnabas.transactions.transaction_machine import Wanted

Response = ListTransactionsResponse


def handle(
    node: Node, request: ListTransactionsRequest, context: RequestContext
) -> Response | Pending[Response]:
    """List transactional ids."""
    unknown = [name for name in request.state_filters if name not in STATES]
    try:
        wanted = _wanted(request)
        answers: list[list[Transaction] | Pending[list[Transaction]]] = [
            shard.run(partial(shard.machine.find, wanted)).or_refused(_elsewhere)
            for shard in node.coordinators.transactions.all_shards()
        ]
    except ApiError as error:
        return Response(error_code=error.code)

    def respond(found: list[list[Transaction]]) -> Response:
        listed = [
            _listed(transaction)
            for part in found
            for transaction in part
            if not is_hidden(node, context, DESCRIBE_TRANSACTIONAL_ID, transaction.transactional_id)
        ]
        return Response(unknown_state_filters=unknown, transaction_states=listed)

    return all_of(answers).map(respond)


def _elsewhere(_: ErrorCode) -> list[Transaction]:
    """Return no transactions of a coordinator that moved: its new broker lists them."""
    return []


def _wanted(request: ListTransactionsRequest) -> Wanted:
    names = request.state_filters
    pattern = request.transactional_id_pattern
    return Wanted(
        states=frozenset(STATES[name] for name in names if name in STATES) if names else None,
        producer_ids=frozenset(request.producer_id_filters),
        longer_than_ms=request.duration_filter,
        matches=_matcher(pattern) if pattern else None,
    )


def _matcher(text: str) -> Callable[[str], bool]:
    """Return whether an id matches a pattern; both may raise INVALID_REGULAR_EXPRESSION."""
    try:
        pattern = NamePattern(text)
    except PatternError as error:
        raise _invalid(error) from error

    def matches(name: str) -> bool:
        try:
            return pattern.matches(name)
        except PatternError as error:
            raise _invalid(error) from error

    return matches


def _invalid(error: PatternError) -> ApiError:
    return ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"transactional id pattern: {error}")


def _listed(transaction: Transaction) -> TransactionState:
    return TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.label,
    )
