"""Ends leftover transactions: commits those that were decided and aborts the others."""

import contextlib
import re
from collections.abc import Iterable, Mapping

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.spark.client_properties import BOOTSTRAP, security_properties
from barnabas.spark.exactly_once.attempts import marker_group
from barnabas.spark.exactly_once.job_record import Record, Ticket
from barnabas.spark.sink.sink_cluster import Cluster
from barnabas.spark.sink.sink_transactions import ONGOING, Transaction, end, marker
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.wire_failures import LinkError

FENCE_TIMEOUT_MS = 60_000
ANSWER_TIMEOUT_S = 5.0
PATIENCE_MS = 5000
TASK = re.compile(r"\d+(\.\d+)?")


def finish(cluster: Cluster, job: str, record: Record, patience_ms: int) -> list[Ticket]:
    """Commit the transactions of the last batch that was decided; return those that are lost."""
    return [
        ticket
        for ticket in record.tickets
        if not is_committed(cluster, job, ticket, record.next_batch, patience_ms)
    ]


def is_committed(
    cluster: Cluster, job: str, ticket: Ticket, next_batch: int, patience_ms: int
) -> bool:
    """Commit a transaction; return whether it is committed, now or before.

    The coordinator refuses if the id was used again meanwhile. Then the marker, which was committed
    together with the rows, shows the outcome.
    """
    if end(cluster, ticket, patience_ms, commit=True) == ErrorCode.NONE:
        return True
    return marker(cluster, marker_group(job, ticket.task), patience_ms) >= next_batch


def abort_leftovers(
    cluster: Cluster, client: Mapping[str, str], job: str, keep: Iterable[Ticket] = ()
) -> list[str]:
    """Abort the open transactions of a job that must not be kept; return their ids.

    This only affects how soon read_committed consumers see later records: a transaction that is not
    decided is never committed, and its timeout also ends it.
    """
    kept = {each.transactional_id for each in keep}
    fenced = []
    with contextlib.suppress(LinkError):
        for name in open_transactions(client, job):
            if name not in kept:
                Transaction(cluster, name, FENCE_TIMEOUT_MS, PATIENCE_MS).fence()
                fenced.append(name)
    return fenced


def open_transactions(client: Mapping[str, str], job: str) -> list[str]:
    """Return the ids of a job's tasks whose transactions are open."""
    request = ListTransactionsRequest(state_filters=[ONGOING])
    found = []
    properties = {**security_properties(client), BOOTSTRAP: client[BOOTSTRAP]}
    with Wire(properties, answer_timeout_s=ANSWER_TIMEOUT_S) as wire:
        for node in wire.nodes():
            answer = wire.ask(node, request, ListTransactionsResponse)
            found += [each.transactional_id for each in answer.transaction_states]
    begin = f"{job}-"
    return [each for each in found if each.startswith(begin) and TASK.fullmatch(each[len(begin) :])]
