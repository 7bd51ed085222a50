"""DefaultPrincipalData."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import Message


class DefaultPrincipalData(Message):
    """Default principal data, version 0, flexible from 0."""

    __slots__ = (
        "type",
        "name",
        "token_authenticated",
    )
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "type string 0+",
        "name string 0+",
        "token_authenticated bool 0+",
    )

    def __init__(
        self,
        *,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
    ) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated
