"""LeaderChangeMessage."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class Voter(Message):
    """Part of LeaderChangeMessage."""

    __slots__ = (
        "voter_id",
        "voter_directory_id",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "voter_id int32 0+",
        "voter_directory_id uuid 1+",
    )

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = bytes(16),
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id


class LeaderChangeMessage(Message):
    """Leader change message, versions 0-1, flexible from 0."""

    __slots__ = (
        "version",
        "leader_id",
        "voters",
        "granting_voters",
    )
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "version int16 0+",
        "leader_id int32 0+",
        "voters []Voter 0+",
        "granting_voters []Voter 0+",
    )

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[Voter] = FRESH,
        granting_voters: list[Voter] = FRESH,
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters: list[Voter] = [] if voters is FRESH else voters
        self.granting_voters: list[Voter] = [] if granting_voters is FRESH else granting_voters
