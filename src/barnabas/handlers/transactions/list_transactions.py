"""ListTransactions (key 66), versions 0 to 2: filters by state and producer id, by how long ago the
transaction began from version 1 (KIP-994), by a pattern of the id from version 2 (KIP-1152).

States that nobody knows are named in the answer and match nothing, as in Kafka. The pattern must
match the whole id; see `transactions/pattern.py` for what it may use.
"""

from functools import partial

from barnabas.handlers.answers import all_of
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from barnabas.transactions.machine import Wanted
from barnabas.transactions.pattern import Pattern
from barnabas.transactions.state import STATES, Transaction

Response = ListTransactionsResponse


def handle(
    node: Node, request: ListTransactionsRequest, _: RequestContext
) -> Response | Pending[Response]:
    """Tell which transactional ids there are."""
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
        listed = [_listed(transaction) for part in found for transaction in part]
        return Response(unknown_state_filters=unknown, transaction_states=listed)

    return all_of(answers).map(respond)


def _elsewhere(_: ErrorCode) -> list[Transaction]:
    """Return the transactions of a coordinator that moved: whoever has it now tells them."""
    return []


def _wanted(request: ListTransactionsRequest) -> Wanted:
    names = request.state_filters
    pattern = request.transactional_id_pattern
    return Wanted(
        states=frozenset(STATES[name] for name in names if name in STATES) if names else None,
        producer_ids=frozenset(request.producer_id_filters),
        longer_than_ms=request.duration_filter,
        matches=Pattern(pattern).matches if pattern else None,
    )


def _listed(transaction: Transaction) -> TransactionState:
    return TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.label,
    )
