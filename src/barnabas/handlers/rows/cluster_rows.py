"""The rows of the APIs about the cluster (metadata, quorum, brokers), and of those about SASL."""

from barnabas.handlers import sasl
from barnabas.handlers.cluster import (
    alter_partition,
    broker_heartbeat,
    broker_registration,
    describe_cluster,
    describe_topic_partitions,
    metadata,
    quorum_apis,
    unregister_broker,
    update_features,
)
from barnabas.handlers.rows.needs import (
    ALTER_CLUSTER,
    CLUSTER_ACTION,
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC,
)
from barnabas.handlers.rows.row import Api, Row
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from barnabas.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from barnabas.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from barnabas.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from barnabas.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from barnabas.protocol.messages.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from barnabas.protocol.messages.vote import VoteRequest, VoteResponse

CLUSTER_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.METADATA,
        0,
        13,
        MetadataRequest,
        MetadataResponse,
        metadata.handle,
        needs=(DESCRIBE_TOPIC, CREATE_CLUSTER | CREATE_TOPIC),
    ),
    Api(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        0,
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
        describe_topic_partitions.handle,
        needs=(DESCRIBE_TOPIC,),
    ),
    Api(
        ApiKey.DESCRIBE_CLUSTER,
        0,
        2,
        DescribeClusterRequest,
        DescribeClusterResponse,
        describe_cluster.handle,
        needs=(),
    ),
    Api(
        ApiKey.SASL_HANDSHAKE,
        0,
        1,
        SaslHandshakeRequest,
        SaslHandshakeResponse,
        sasl.handle_handshake,
        needs=(),
    ),
    Api(
        ApiKey.SASL_AUTHENTICATE,
        0,
        2,
        SaslAuthenticateRequest,
        SaslAuthenticateResponse,
        sasl.handle_authenticate,
        needs=(),
    ),
    Api(
        ApiKey.DESCRIBE_QUORUM,
        0,
        2,
        DescribeQuorumRequest,
        DescribeQuorumResponse,
        quorum_apis.handle_describe_quorum,
        needs=(DESCRIBE_CLUSTER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.UPDATE_FEATURES,
        0,
        2,
        UpdateFeaturesRequest,
        UpdateFeaturesResponse,
        update_features.handle,
        needs=(ALTER_CLUSTER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.UNREGISTER_BROKER,
        0,
        0,
        UnregisterBrokerRequest,
        UnregisterBrokerResponse,
        unregister_broker.handle,
        needs=(ALTER_CLUSTER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.ADD_RAFT_VOTER,
        0,
        1,
        AddRaftVoterRequest,
        AddRaftVoterResponse,
        quorum_apis.handle_add_voter,
        needs=(ALTER_CLUSTER,),
        is_forwarded=True,
    ),
    Api(
        ApiKey.REMOVE_RAFT_VOTER,
        0,
        0,
        RemoveRaftVoterRequest,
        RemoveRaftVoterResponse,
        quorum_apis.handle_remove_voter,
        needs=(ALTER_CLUSTER,),
        is_forwarded=True,
    ),
)

CLUSTER_PEER_ROWS: tuple[Row, ...] = (
    Api(
        ApiKey.VOTE,
        0,
        2,
        VoteRequest,
        VoteResponse,
        quorum_apis.handle_vote,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.BEGIN_QUORUM_EPOCH,
        0,
        1,
        BeginQuorumEpochRequest,
        BeginQuorumEpochResponse,
        quorum_apis.handle_begin_quorum_epoch,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.END_QUORUM_EPOCH,
        0,
        1,
        EndQuorumEpochRequest,
        EndQuorumEpochResponse,
        quorum_apis.handle_end_quorum_epoch,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.FETCH_SNAPSHOT,
        0,
        1,
        FetchSnapshotRequest,
        FetchSnapshotResponse,
        quorum_apis.handle_fetch_snapshot,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.UPDATE_RAFT_VOTER,
        0,
        0,
        UpdateRaftVoterRequest,
        UpdateRaftVoterResponse,
        quorum_apis.handle_update_voter,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.ALTER_PARTITION,
        2,
        3,
        AlterPartitionRequest,
        AlterPartitionResponse,
        alter_partition.handle,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.BROKER_REGISTRATION,
        0,
        4,
        BrokerRegistrationRequest,
        BrokerRegistrationResponse,
        broker_registration.handle,
        needs=(CLUSTER_ACTION,),
    ),
    Api(
        ApiKey.BROKER_HEARTBEAT,
        0,
        2,
        BrokerHeartbeatRequest,
        BrokerHeartbeatResponse,
        broker_heartbeat.handle,
        needs=(CLUSTER_ACTION,),
    ),
)
"""The rows of the APIs that only other brokers may call."""
