"""ConsumerGroupMemberMetadataKey and ConsumerGroupMemberMetadataValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ConsumerGroupMemberMetadataKey(Message):
    """Consumer group member metadata key, version 0, never flexible."""

    __slots__ = (
        "group_id",
        "member_id",
    )
    VERSIONS = (0, 0)
    FIELDS = (
        "group_id string 0",
        "member_id string 0",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


class ClassicProtocol(Message):
    """Part of ConsumerGroupMemberMetadataValue."""

    __slots__ = (
        "name",
        "metadata",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "metadata bytes 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class ClassicMemberMetadata(Message):
    """Part of ConsumerGroupMemberMetadataValue."""

    __slots__ = (
        "session_timeout_ms",
        "supported_protocols",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "session_timeout_ms int32 0+",
        "supported_protocols []ClassicProtocol 0+",
    )

    def __init__(
        self,
        *,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] = FRESH,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols: list[ClassicProtocol] = [] if supported_protocols is FRESH else supported_protocols


class ConsumerGroupMemberMetadataValue(Message):
    """Consumer group member metadata value, version 0, flexible from 0."""

    __slots__ = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "rebalance_timeout_ms",
        "server_assignor",
        "classic_member_metadata",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "instance_id string 0+ nullable=0+",
        "rack_id string 0+ nullable=0+",
        "client_id string 0+",
        "client_host string 0+",
        "subscribed_topic_names []string 0+",
        "subscribed_topic_regex string 0+ nullable=0+",
        "rebalance_timeout_ms int32 0+ default=-1",
        "server_assignor string 0+ nullable=0+",
        "classic_member_metadata ClassicMemberMetadata 0+ nullable=0+ tag=0 tagged=0+",
    )

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = FRESH,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | None = FRESH,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is FRESH else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata() if classic_member_metadata is FRESH else classic_member_metadata
