"""AlterPartitionRequest and AlterPartitionResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class BrokerState(Message):
    """Part of AlterPartitionRequest."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
    )
    VERSIONS = (2, 3)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "broker_id int32 3+",
        "broker_epoch int64 3+ default=-1",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class AlterPartitionRequestPartitionData(Message):
    """Part of AlterPartitionRequest."""

    __slots__ = (
        "partition_index",
        "leader_epoch",
        "new_isr",
        "new_isr_with_epochs",
        "leader_recovery_state",
        "partition_epoch",
    )
    VERSIONS = (2, 3)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "leader_epoch int32 0+",
        "new_isr []int32 0-2",
        "new_isr_with_epochs []BrokerState 3+",
        "leader_recovery_state int8 1+",
        "partition_epoch int32 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] = FRESH,
        new_isr_with_epochs: list[BrokerState] = FRESH,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.new_isr: list[int] = [] if new_isr is FRESH else new_isr
        self.new_isr_with_epochs: list[BrokerState] = [] if new_isr_with_epochs is FRESH else new_isr_with_epochs
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch


class AlterPartitionRequestTopicData(Message):
    """Part of AlterPartitionRequest."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (2, 3)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 2+ ignorable",
        "partitions []AlterPartitionRequestPartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[AlterPartitionRequestPartitionData] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[AlterPartitionRequestPartitionData] = [] if partitions is FRESH else partitions


class AlterPartitionRequest(Message):
    """Alter partition request, versions 2-3, flexible from 0."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
        "topics",
    )
    VERSIONS = (2, 3)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "broker_id int32 0+",
        "broker_epoch int64 0+ default=-1",
        "topics []AlterPartitionRequestTopicData 0+",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequestTopicData] = FRESH,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics: list[AlterPartitionRequestTopicData] = [] if topics is FRESH else topics


class AlterPartitionResponsePartitionData(Message):
    """Part of AlterPartitionResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
        "isr",
        "leader_recovery_state",
        "partition_epoch",
    )
    VERSIONS = (2, 3)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "partition_index int32 0+",
        "error_code int16 0+",
        "leader_id int32 0+",
        "leader_epoch int32 0+",
        "isr []int32 0+",
        "leader_recovery_state int8 1+ ignorable",
        "partition_epoch int32 0+",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = FRESH,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.isr: list[int] = [] if isr is FRESH else isr
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch


class AlterPartitionResponseTopicData(Message):
    """Part of AlterPartitionResponse."""

    __slots__ = (
        "topic_id",
        "partitions",
    )
    VERSIONS = (2, 3)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 2+ ignorable",
        "partitions []AlterPartitionResponsePartitionData 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        partitions: list[AlterPartitionResponsePartitionData] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.partitions: list[AlterPartitionResponsePartitionData] = [] if partitions is FRESH else partitions


class AlterPartitionResponse(Message):
    """Alter partition response, versions 2-3, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "topics",
    )
    VERSIONS = (2, 3)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "topics []AlterPartitionResponseTopicData 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponseTopicData] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics: list[AlterPartitionResponseTopicData] = [] if topics is FRESH else topics
