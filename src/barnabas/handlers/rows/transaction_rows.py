"""The rows of the APIs for transactions and producers."""

from barnabas.handlers.rows.needs import (
    ALTER_CLUSTER,
    CLUSTER_ACTION,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    IDEMPOTENT_WRITE_CLUSTER,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from barnabas.handlers.rows.row import Api, Row
from barnabas.handlers.transactions import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    describe_producers,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    txn_offset_commit,
    write_txn_markers,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TRANSACTION_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.INIT_PRODUCER_ID,
        0,
        5,
        InitProducerIdRequest,
        InitProducerIdResponse,
        init_producer_id.handle,
        needs=(WRITE_TRANSACTIONAL_ID | IDEMPOTENT_WRITE_CLUSTER | WRITE_TOPIC,),
    ),
    Api(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        0,
        5,
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
        add_partitions_to_txn.handle,
        needs=(WRITE_TRANSACTIONAL_ID | CLUSTER_ACTION, WRITE_TOPIC | CLUSTER_ACTION),
    ),
    Api(
        ApiKey.ADD_OFFSETS_TO_TXN,
        0,
        4,
        AddOffsetsToTxnRequest,
        AddOffsetsToTxnResponse,
        add_offsets_to_txn.handle,
        needs=(WRITE_TRANSACTIONAL_ID, READ_GROUP),
    ),
    Api(
        ApiKey.END_TXN,
        0,
        5,
        EndTxnRequest,
        EndTxnResponse,
        end_txn.handle,
        needs=(WRITE_TRANSACTIONAL_ID,),
    ),
    Api(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        2,
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
        write_txn_markers.handle,
        needs=(ALTER_CLUSTER | CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.TXN_OFFSET_COMMIT,
        0,
        5,
        TxnOffsetCommitRequest,
        TxnOffsetCommitResponse,
        txn_offset_commit.handle,
        needs=(WRITE_TRANSACTIONAL_ID, READ_GROUP, READ_TOPIC),
    ),
    Api(
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        0,
        DescribeProducersRequest,
        DescribeProducersResponse,
        describe_producers.handle,
        needs=(READ_TOPIC,),
    ),
    Api(
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        0,
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
        describe_transactions.handle,
        needs=(DESCRIBE_TRANSACTIONAL_ID, DESCRIBE_TOPIC),
    ),
    Api(
        ApiKey.LIST_TRANSACTIONS,
        0,
        2,
        ListTransactionsRequest,
        ListTransactionsResponse,
        list_transactions.handle,
        needs=(DESCRIBE_TRANSACTIONAL_ID,),
    ),
)

TRANSACTION_PEER_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.ALLOCATE_PRODUCER_IDS,
        0,
        0,
        AllocateProducerIdsRequest,
        AllocateProducerIdsResponse,
        allocate_producer_ids.handle,
        needs=(CLUSTER_ACTION,),
    ),
)
"""The rows of the APIs that only other brokers may call."""
