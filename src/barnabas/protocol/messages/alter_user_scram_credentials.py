"""AlterUserScramCredentialsRequest and AlterUserScramCredentialsResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class ScramCredentialDeletion(Message):
    """Part of AlterUserScramCredentialsRequest."""

    __slots__ = (
        "name",
        "mechanism",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "mechanism int8 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism


class ScramCredentialUpsertion(Message):
    """Part of AlterUserScramCredentialsRequest."""

    __slots__ = (
        "name",
        "mechanism",
        "iterations",
        "salt",
        "salted_password",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "name string 0+",
        "mechanism int8 0+",
        "iterations int32 0+",
        "salt bytes 0+",
        "salted_password bytes 0+",
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


class AlterUserScramCredentialsRequest(Message):
    """Alter user scram credentials request, version 0, flexible from 0."""

    __slots__ = (
        "deletions",
        "upsertions",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "deletions []ScramCredentialDeletion 0+",
        "upsertions []ScramCredentialUpsertion 0+",
    )

    def __init__(
        self,
        *,
        deletions: list[ScramCredentialDeletion] = FRESH,
        upsertions: list[ScramCredentialUpsertion] = FRESH,
    ) -> None:
        self.deletions: list[ScramCredentialDeletion] = [] if deletions is FRESH else deletions
        self.upsertions: list[ScramCredentialUpsertion] = [] if upsertions is FRESH else upsertions


class AlterUserScramCredentialsResult(Message):
    """Part of AlterUserScramCredentialsResponse."""

    __slots__ = (
        "user",
        "error_code",
        "error_message",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "user string 0+",
        "error_code int16 0+",
        "error_message string 0+ nullable=0+",
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


class AlterUserScramCredentialsResponse(Message):
    """Alter user scram credentials response, version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "results []AlterUserScramCredentialsResult 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] = FRESH,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results: list[AlterUserScramCredentialsResult] = [] if results is FRESH else results
