"""List, describe and abort transactions, and find hanging ones.

Coordinators know transactional ids and the partitions of each transaction. Partition leaders know
the producers that have written records without an end marker. If the two disagree for longer than a
transaction may last, the transaction hangs: read_committed consumers wait at its first offset, and
no coordinator will end it (KIP-664).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.scopes import Place
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages import describe_producers, describe_transactions
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.wire.cluster_wire import Kind, Node, Wire, require, settled

ONGOING = "Ongoing"
ENDING = {"PrepareCommit", "PrepareAbort", "PrepareEpochFence"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A transactional id from ListTransactions."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transactional id from DescribeTransactions; without a start if no transaction is open."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: list[Place]

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        places = [{"topic": topic, "partition": number} for topic, number in self.partitions]
        return asdict(self) | {"partitions": places}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """An open transaction on a partition, as its leader sees it."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_write_ms: int

    @property
    def place(self) -> Place:
        """The partition."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Hanging:
    """An open transaction that should have ended, and the reason why it has not."""

    open: OpenTransaction
    transactional_id: str | None
    state: str | None
    """The transactional id, if the coordinator still has the partition."""
    idle_ms: int
    reason: str

    @property
    def remedy(self) -> str:
        """The arguments of `barnabas txn abort` that end it."""
        if self.state == ONGOING and self.transactional_id is not None:
            return self.transactional_id
        where = self.open
        return f"{where.topic}:{where.partition} --start-offset {where.start_offset}"

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        found = asdict(self)
        return {**found.pop("open"), **found}


def why_hanging(
    found: OpenTransaction, known: Transaction | None, now_ms: int, patience_ms: int
) -> str | None:
    """Return why an open transaction will not end; None if it still may.

    `patience_ms` is the limit for a transaction whose own timeout is unknown.
    """
    if known is not None and found.place in known.partitions:
        age_ms = now_ms - (known.started_ms or found.last_write_ms)
        is_late = age_ms > known.timeout_ms
        return f"{known.state}, and past its timeout" if is_late else None
    limit_ms = patience_ms if known is None else known.timeout_ms
    if now_ms - found.last_write_ms <= limit_ms:
        return None
    return (
        "no coordinator knows its producer" if known is None else "its coordinator does not know it"
    )


class Transactions:
    """The transactions of a cluster."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self, states: Iterable[str] = (), producer_ids: Iterable[int] = ()) -> list[Listing]:
        """Return all transactional ids of all coordinators, or those in some states."""
        request = ListTransactionsRequest(
            state_filters=list(states), producer_id_filters=list(producer_ids)
        )
        found = []
        for node in self._wire.nodes():
            answer = self._list(node, request)
            if answer.unknown_state_filters:
                words = ", ".join(answer.unknown_state_filters)
                raise AdminError(f"Broker {node.id} knows no state {words}; omit --state")
            found += [
                Listing(
                    transactional_id=each.transactional_id,
                    coordinator=node.id,
                    producer_id=each.producer_id,
                    state=each.transaction_state,
                )
                for each in answer.transaction_states
            ]
        return sorted(found, key=lambda each: each.transactional_id)

    def _list(self, node: Node, request: ListTransactionsRequest) -> ListTransactionsResponse:
        def ask() -> tuple[int, ListTransactionsResponse]:
            answer = self._wire.ask(node, request, ListTransactionsResponse)
            return answer.error_code, answer

        return settled(ask, f"Broker {node.id} cannot list transactions")

    def describe(self, transactional_id: str) -> Transaction | None:
        """Return a transactional id as its coordinator describes it."""
        node = self._wire.coordinator(Kind.TRANSACTION, transactional_id)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

        def ask() -> tuple[int, describe_transactions.TransactionState | None]:
            state = self._wire.ask(node, request, DescribeTransactionsResponse)
            (found,) = state.transaction_states
            if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                return ErrorCode.NONE, None
            return found.error_code, found

        state = settled(ask, f"Transactional id {transactional_id}")
        return None if state is None else _transaction(node, state)

    def open_on(self, places: Iterable[Place] | None = None) -> list[OpenTransaction]:
        """Return the transactions open on some partitions, or on all that have a leader."""
        found = []
        for leader, topics in self._by_leader(places).items():
            request = DescribeProducersRequest(
                topics=[
                    TopicRequest(name=topic, partition_indexes=numbers)
                    for topic, numbers in topics.items()
                ]
            )
            answer = self._wire.ask(leader, request, DescribeProducersResponse)
            for topic in answer.topics:
                for partition in topic.partitions:
                    found += _open_transactions(topic.name, partition)
        return found

    def hanging(
        self, places: Iterable[Place] | None, now_ms: int, patience_ms: int
    ) -> list[Hanging]:
        """Return the open transactions that no coordinator will end, or not in time."""
        opened = self.open_on(places)
        known = self._known({each.producer_id for each in opened})
        found = []
        for each in opened:
            transaction = known.get(each.producer_id)
            reason = why_hanging(each, transaction, now_ms, patience_ms)
            if reason is not None:
                found.append(_hanging(each, transaction, now_ms, reason))
        return found

    def _known(self, producer_ids: set[int]) -> dict[int, Transaction]:
        if not producer_ids:
            return {}
        listed = self.all(producer_ids=sorted(producer_ids))
        described = {each.producer_id: self.describe(each.transactional_id) for each in listed}
        return {number: found for number, found in described.items() if found is not None}

    def end_on(self, found: OpenTransaction) -> None:
        """Write an abort marker to a partition, without its coordinator."""
        (leader,) = self._by_leader([found.place])
        marker = WritableTxnMarker(
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            # -1 if the partition has no marker of the producer yet.
            coordinator_epoch=max(0, found.coordinator_epoch),
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=found.topic, partition_indexes=[found.partition])],
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        answer = self._wire.ask(leader, request, WriteTxnMarkersResponse)
        code = answer.markers[0].topics[0].partitions[0].error_code
        if code == ErrorCode.INVALID_PRODUCER_EPOCH:
            raise AdminError(
                f"Producer {found.producer_id} changed before its transaction could be aborted; "
                "check again with `barnabas txn hanging`"
            )
        require(code, f"No abort marker for {found.topic}-{found.partition}")

    def fence(self, transaction: Transaction) -> None:
        """Make the coordinator abort the open transaction and fence its producer."""
        node = self._wire.coordinator(Kind.TRANSACTION, transaction.transactional_id)
        # InitProducerId, as a new producer sends it; with the same timeout it changes nothing else.
        request = InitProducerIdRequest(
            transactional_id=transaction.transactional_id,
            transaction_timeout_ms=transaction.timeout_ms,
        )

        def ask() -> tuple[int, None]:
            return self._wire.ask(node, request, InitProducerIdResponse).error_code, None

        settled(ask, f"Transactional id {transaction.transactional_id}")

    def _by_leader(self, places: Iterable[Place] | None) -> Mapping[Node, dict[str, list[int]]]:
        """Group partitions by leader, then by topic."""
        metadata = self._wire.metadata()
        nodes = {
            each.node_id: Node(each.node_id, each.host, each.port) for each in metadata.brokers
        }
        leaders = {
            (topic.name or "", partition.partition_index): nodes.get(partition.leader_id)
            for topic in metadata.topics
            for partition in topic.partitions
        }
        sorted_out: dict[Node, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for topic, number in leaders if places is None else places:
            leader = _leader(leaders, (topic, number))
            if leader is not None:
                sorted_out[leader][topic].append(number)
            elif places is not None:
                raise AdminError(f"{topic}-{number} has no leader now; start its broker")
        return sorted_out


def _hanging(
    found: OpenTransaction, known: Transaction | None, now_ms: int, reason: str
) -> Hanging:
    is_coordinated = known is not None and found.place in known.partitions
    return Hanging(
        open=found,
        transactional_id=None if known is None else known.transactional_id,
        state=known.state if known is not None and is_coordinated else None,
        idle_ms=now_ms - found.last_write_ms,
        reason=reason,
    )


def _leader(leaders: Mapping[Place, Node | None], place: Place) -> Node | None:
    if place not in leaders:
        raise AdminError(
            f"There is no partition {place[0]}-{place[1]}; "
            "`barnabas topic list` lists topics with their partitions"
        )
    return leaders[place]


def _transaction(node: Node, state: describe_transactions.TransactionState) -> Transaction:
    # Kafka keeps the start time of the last transaction after its end.
    is_open = state.transaction_state in {ONGOING, *ENDING}
    places = ((each.topic, number) for each in state.topics for number in each.partitions)
    return Transaction(
        transactional_id=state.transactional_id,
        coordinator=node.id,
        state=state.transaction_state,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        timeout_ms=state.transaction_timeout_ms,
        started_ms=state.transaction_start_time_ms if is_open else None,
        partitions=sorted(places),
    )


def _open_transactions(
    topic: str, partition: describe_producers.PartitionResponse
) -> list[OpenTransaction]:
    # A leader that has just moved must not hide the answers of the others.
    moved = partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    require(0 if moved else partition.error_code, f"{topic}-{partition.partition_index}")
    return [
        _open_transaction(topic, partition.partition_index, state)
        for state in partition.active_producers
        if state.current_txn_start_offset >= 0
    ]


def _open_transaction(topic: str, number: int, state: ProducerState) -> OpenTransaction:
    return OpenTransaction(
        topic=topic,
        partition=number,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        coordinator_epoch=state.coordinator_epoch,
        start_offset=state.current_txn_start_offset,
        last_write_ms=state.last_timestamp,
    )
