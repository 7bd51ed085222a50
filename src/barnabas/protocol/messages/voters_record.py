"""VotersRecord."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class Endpoint(Message):
    """Part of VotersRecord."""

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
    """Part of VotersRecord."""

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


class Voter(Message):
    """Part of VotersRecord."""

    __slots__ = (
        "voter_id",
        "voter_directory_id",
        "endpoints",
        "kraft_version_feature",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "voter_id int32 0+",
        "voter_directory_id uuid 0+",
        "endpoints []Endpoint 0+",
        "kraft_version_feature KRaftVersionFeature 0+",
    )

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = bytes(16),
        endpoints: list[Endpoint] = FRESH,
        kraft_version_feature: KRaftVersionFeature = FRESH,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.endpoints: list[Endpoint] = [] if endpoints is FRESH else endpoints
        self.kraft_version_feature: KRaftVersionFeature = KRaftVersionFeature() if kraft_version_feature is FRESH else kraft_version_feature


class VotersRecord(Message):
    """Voters record, version 0, flexible from 0."""

    __slots__ = (
        "version",
        "voters",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "version int16 0+",
        "voters []Voter 0+",
    )

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[Voter] = FRESH,
    ) -> None:
        self.version = version
        self.voters: list[Voter] = [] if voters is FRESH else voters
