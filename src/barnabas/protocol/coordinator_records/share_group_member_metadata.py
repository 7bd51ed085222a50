"""ShareGroupMemberMetadataKey and ShareGroupMemberMetadataValue."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ShareGroupMemberMetadataKey(Message):
    """Share group member metadata key, version 0, never flexible."""

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


class ShareGroupMemberMetadataValue(Message):
    """Share group member metadata value, version 0, flexible from 0."""

    __slots__ = (
        "rack_id",
        "client_id",
        "client_host",
        "subscribed_topic_names",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "rack_id string 0+ nullable=0+",
        "client_id string 0+",
        "client_host string 0+",
        "subscribed_topic_names []string 0+",
    )

    def __init__(
        self,
        *,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = FRESH,
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is FRESH else subscribed_topic_names
