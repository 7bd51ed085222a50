"""DescribeUserScramCredentialsRequest and DescribeUserScramCredentialsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class UserName(Message):
    """Part of DescribeUserScramCredentialsRequest."""

    __slots__ = (
        "name",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name = name


class DescribeUserScramCredentialsRequest(Message):
    """Describe user scram credentials request, version 0, flexible from 0."""

    __slots__ = (
        "users",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "users []UserName 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        users: list[UserName] | None = FRESH,
    ) -> None:
        self.users: list[UserName] | None = [] if users is FRESH else users


class CredentialInfo(Message):
    """Part of DescribeUserScramCredentialsResponse."""

    __slots__ = (
        "mechanism",
        "iterations",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "mechanism int8 0+",
        "iterations int32 0+",
    )

    def __init__(
        self,
        *,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class DescribeUserScramCredentialsResult(Message):
    """Part of DescribeUserScramCredentialsResponse."""

    __slots__ = (
        "user",
        "error_code",
        "error_message",
        "credential_infos",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "user string 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "credential_infos []CredentialInfo 0+",
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] = FRESH,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos: list[CredentialInfo] = [] if credential_infos is FRESH else credential_infos


class DescribeUserScramCredentialsResponse(Message):
    """Describe user scram credentials response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
        "results []DescribeUserScramCredentialsResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results: list[DescribeUserScramCredentialsResult] = [] if results is FRESH else results
