"""Finds partition leaders and coordinators for the sink, and keeps connections to their brokers.

Python workers live on from task to task, so one `Cluster` an address list lives on in the module
and keeps its connections. A broken connection or an outdated leader is dropped and looked up again:
`ask` repeats a request until the response has no retriable error, or the timeout is over.

Versions stop where transaction version 2 begins (KIP-890): its clients leave it to Produce to add
partitions, and get a new epoch with each commit. Partitions added beforehand and one epoch from
first row to commit is what brokers old and new understand, and what lets the driver commit what a
task has written.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from barnabas.model.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.addresses import split_address
from barnabas.wire.cluster_wire import Kind, require
from barnabas.wire.link import ANSWER_TIMEOUT_S
from barnabas.wire.link_security import LinkSecurity
from barnabas.wire.pipeline import Pipeline, Pool
from barnabas.wire.wire_failures import LinkError, LoginError

CEILINGS: dict[type[Message], int] = {
    AddPartitionsToTxnRequest: 3,
    EndTxnRequest: 4,
    FindCoordinatorRequest: 3,
    InitProducerIdRequest: 4,
    OffsetFetchRequest: 7,
    ProduceRequest: 11,
    TxnOffsetCommitRequest: 4,
}

PAUSE_S = 0.02
PAUSE_MAX_S = 1.0
METADATA_AGE_MAX_S = 60.0
TOPIC_PATIENCE_S = 10.0
"""How long a topic may take to appear: a broker that creates topics needs a moment."""

PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)
"""Retriable errors of coordinators."""

APPEARING = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})

M = TypeVar("M", bound=Message)


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int


class Topic(NamedTuple):
    """The topic metadata that a writer needs."""

    leaders: dict[int, Address]
    """By partition; one without a leader is missing."""
    partitions: int
    seen_at_s: float


class Cluster:
    """The brokers behind one list of addresses."""

    def __init__(
        self,
        bootstrap: str,
        client_id: str,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        security: LinkSecurity | None = None,
    ) -> None:
        self._bootstrap = bootstrap
        self._data = Pool(client_id, CEILINGS, answer_timeout_s, security)
        self._control = Pool(client_id, CEILINGS, answer_timeout_s, security)
        self._topics: dict[str, Topic] = {}
        self._coordinators: dict[tuple[Kind, str], Address] = {}

    def topic(self, name: str, patience_s: float = TOPIC_PATIENCE_S) -> Topic:
        """Return the leaders of a topic's partitions.

        Waits a moment for a missing topic, and for as long as it is told where no broker answers.
        """
        found = self._topics.get(name)
        if found is None or time.monotonic() - found.seen_at_s > METADATA_AGE_MAX_S:
            found = self._topics[name] = self._look_up(name, patience_s)
        return found

    def pipeline(self, address: Address) -> Pipeline:
        """Return the connection to a broker that record batches travel on."""
        return self._data.to(*address)

    def hang_up(self, address: Address) -> None:
        """Close the connection to a broker; the next batch opens another."""
        self._data.drop(*address)

    def forget(self) -> None:
        """Close all connections and look everything up again."""
        self._data.close()
        self._control.close()
        self._topics.clear()
        self._coordinators.clear()

    def producer_id(self, deadline_s: float) -> tuple[int, int]:
        """Return an id and epoch of a producer without transactions, from any broker."""
        request = InitProducerIdRequest(transactional_id=None)

        def attempt() -> tuple[InitProducerIdResponse, int]:
            answer = self._any().ask(request, InitProducerIdResponse)
            return answer, answer.error_code

        answer = self._repeated(attempt, deadline_s, PASSING)
        require(answer.error_code, "A producer id")
        return answer.producer_id, answer.producer_epoch

    def ask(
        self,
        coordinator: tuple[Kind, str],
        request: Message,
        expected: type[M],
        code: Callable[[M], int],
        deadline_s: float,
    ) -> M:
        """Ask a coordinator until its response has no retriable error."""

        def attempt() -> tuple[M, int]:
            address = self._coordinator(*coordinator, deadline_s)
            answer = self._control.to(*address).ask(request, expected)
            return answer, code(answer)

        return self._repeated(attempt, deadline_s, PASSING)

    def _repeated(
        self,
        attempt: Callable[[], tuple[M, int]],
        deadline_s: float,
        passing: frozenset[ErrorCode],
        passing_s: float = math.inf,
    ) -> M:
        """Repeat until there is an answer without a retriable error, or time is over.

        Errors that brokers answer must pass within `passing_s` of the first answer.
        """
        passing_until_s = math.inf
        pause_s = PAUSE_S
        while True:
            late = time.monotonic() > deadline_s
            try:
                answer, code = attempt()
            except LoginError:
                raise
            except LinkError:
                if late:
                    raise
                self.forget()
                passing_until_s = math.inf
            else:
                now_s = time.monotonic()
                if code not in passing or late or now_s > passing_until_s:
                    return answer
                passing_until_s = min(passing_until_s, now_s + passing_s)
                if code in {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}:
                    self._coordinators.clear()
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)

    def _coordinator(self, kind: Kind, key: str, deadline_s: float) -> Address:
        found = self._coordinators.get((kind, key))
        if found is None:
            request = FindCoordinatorRequest(key_type=kind, key=key)

            def attempt() -> tuple[FindCoordinatorResponse, int]:
                answer = self._any().ask(request, FindCoordinatorResponse)
                return answer, answer.error_code

            answer = self._repeated(attempt, deadline_s, PASSING)
            require(answer.error_code, f"The coordinator of {key}")
            found = self._coordinators[kind, key] = Address(answer.host, answer.port)
        return found

    def _look_up(self, name: str, patience_s: float) -> Topic:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])

        def attempt() -> tuple[MetadataResponse, int]:
            answer = self._any().ask(request, MetadataResponse)
            return answer, answer.topics[0].error_code

        deadline_s = time.monotonic() + patience_s
        answer = self._repeated(attempt, deadline_s, APPEARING, TOPIC_PATIENCE_S)
        found = answer.topics[0]
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise LinkError(
                f"Topic {name!r} does not exist and the broker did not create it; create it first: "
                f"barnabas topic create {name}"
            )
        require(found.error_code, f"Topic {name!r}")
        return _topic(answer, found)

    def _any(self) -> Pipeline:
        """Return a connection to the first broker of the list that answers."""
        for address in self._bootstrap.split(","):
            try:
                return self._control.to(*split_address(address))
            except LoginError:
                raise
            except LinkError:
                continue
        raise LinkError(
            f"No broker answered at {self._bootstrap}; start one, or correct "
            "kafka.bootstrap.servers"
        )


def _topic(answer: MetadataResponse, found: MetadataResponseTopic) -> Topic:
    brokers = {each.node_id: Address(each.host, each.port) for each in answer.brokers}
    leaders = {
        each.partition_index: brokers[each.leader_id]
        for each in found.partitions
        if each.leader_id in brokers
    }
    return Topic(leaders, len(found.partitions), time.monotonic())


_clusters: dict[tuple[str, str, float, LinkSecurity | None], Cluster] = {}


def cluster_at(
    bootstrap: str,
    client_id: str,
    answer_timeout_s: float = ANSWER_TIMEOUT_S,
    security: LinkSecurity | None = None,
) -> Cluster:
    """Return the cluster behind a list of addresses, with the connections of earlier tasks."""
    key = bootstrap, client_id, answer_timeout_s, security
    found = _clusters.get(key)
    if found is None:
        found = _clusters[key] = Cluster(*key)
    return found
