"""ConsumerGroupDescribeRequest and ConsumerGroupDescribeResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ConsumerGroupDescribeRequest(Message):
    """Consumer group describe request, versions 0-1, flexible from 0."""

    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "group_ids []string 0+",
        "include_authorized_operations bool 0+",
    )

    def __init__(
        self,
        *,
        group_ids: list[str] = FRESH,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is FRESH else group_ids
        self.include_authorized_operations = include_authorized_operations


class TopicPartitions(Message):
    """Part of ConsumerGroupDescribeResponse."""

    __slots__ = (
        "topic_id",
        "topic_name",
        "partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_id uuid 0+",
        "topic_name string 0+",
        "partitions []int32 0+",
    )

    def __init__(
        self,
        *,
        topic_id: bytes = bytes(16),
        topic_name: str = "",
        partitions: list[int] = FRESH,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions: list[int] = [] if partitions is FRESH else partitions


class Assignment(Message):
    """Part of ConsumerGroupDescribeResponse."""

    __slots__ = (
        "topic_partitions",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "topic_partitions []TopicPartitions 0+",
    )

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] = FRESH,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is FRESH else topic_partitions


class Member(Message):
    """Part of ConsumerGroupDescribeResponse."""

    __slots__ = (
        "member_id",
        "instance_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "assignment",
        "target_assignment",
        "member_type",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "member_id string 0+",
        "instance_id string 0+ nullable=0+ default=null",
        "rack_id string 0+ nullable=0+ default=null",
        "member_epoch int32 0+",
        "client_id string 0+",
        "client_host string 0+",
        "subscribed_topic_names []string 0+",
        "subscribed_topic_regex string 0+ nullable=0+ default=null",
        "assignment Assignment 0+",
        "target_assignment Assignment 0+",
        "member_type int8 1+ default=-1 ignorable",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = FRESH,
        subscribed_topic_regex: str | None = None,
        assignment: Assignment = FRESH,
        target_assignment: Assignment = FRESH,
        member_type: int = -1,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is FRESH else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment: Assignment = Assignment() if assignment is FRESH else assignment
        self.target_assignment: Assignment = Assignment() if target_assignment is FRESH else target_assignment
        self.member_type = member_type


class DescribedGroup(Message):
    """Part of ConsumerGroupDescribeResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
        "members",
        "authorized_operations",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "error_code int16 0+",
        "error_message string 0+ nullable=0+ default=null",
        "group_id string 0+",
        "group_state string 0+",
        "group_epoch int32 0+",
        "assignment_epoch int32 0+",
        "assignor_name string 0+",
        "members []Member 0+",
        "authorized_operations int32 0+ default=-2147483648",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] = FRESH,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members: list[Member] = [] if members is FRESH else members
        self.authorized_operations = authorized_operations


class ConsumerGroupDescribeResponse(Message):
    """Consumer group describe response, versions 0-1, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "groups []DescribedGroup 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is FRESH else groups
