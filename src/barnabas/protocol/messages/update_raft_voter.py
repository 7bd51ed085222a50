"""UpdateRaftVoterRequest and UpdateRaftVoterResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class Listener(Message):
    """Part of UpdateRaftVoterRequest."""

    __slots__ = (
        "name",
        "host",
        "port",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "host string 0+",
        "port uint16 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


class KRaftVersionFeature(Message):
    """Part of UpdateRaftVoterRequest."""

    __slots__ = (
        "min_supported_version",
        "max_supported_version",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "min_supported_version int16 0+",
        "max_supported_version int16 0+",
    )

    def __init__(
        self,
        *,
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class UpdateRaftVoterRequest(Message):
    """Update raft voter request, version 0, flexible from 0."""

    __slots__ = (
        "cluster_id",
        "current_leader_epoch",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "kraft_version_feature",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "cluster_id string 0+ nullable=0+",
        "current_leader_epoch int32 0+",
        "voter_id int32 0+",
        "voter_directory_id uuid 0+",
        "listeners []Listener 0+",
        "kraft_version_feature KRaftVersionFeature 0+",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = bytes(16),
        listeners: list[Listener] = FRESH,
        kraft_version_feature: KRaftVersionFeature = FRESH,
    ) -> None:
        self.cluster_id = cluster_id
        self.current_leader_epoch = current_leader_epoch
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners: list[Listener] = [] if listeners is FRESH else listeners
        self.kraft_version_feature: KRaftVersionFeature = KRaftVersionFeature() if kraft_version_feature is FRESH else kraft_version_feature


class CurrentLeader(Message):
    """Part of UpdateRaftVoterResponse."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
        "host",
        "port",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "leader_id int32 0+ default=-1",
        "leader_epoch int32 0+ default=-1",
        "host string 0+",
        "port int32 0+",
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.host = host
        self.port = port


class UpdateRaftVoterResponse(Message):
    """Update raft voter response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "current_leader",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "current_leader CurrentLeader 0+ tag=0 tagged=0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: CurrentLeader = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.current_leader: CurrentLeader = CurrentLeader() if current_leader is FRESH else current_leader
