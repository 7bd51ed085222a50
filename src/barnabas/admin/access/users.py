"""Users with passwords: their SCRAM credentials in the cluster's metadata."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.admin.admin_errors import AdminError
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from barnabas.security.scram_formulas import (
    SALT_BYTES,
    SCRAM_BY_CODE,
    SCRAM_BY_NAME,
    salt_password,
)
from barnabas.wire.cluster_wire import NOT_YET, Wire, require, settled

ITERATIONS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user, and the mechanisms that it has a password for."""

    name: str
    mechanisms: tuple[str, ...]
    iterations: int


def users(wire: Wire) -> list[User]:
    """Return all users, by name."""
    answer = wire.ask_any(
        DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse
    )
    require(answer.error_code, "The users cannot be listed")
    found = []
    for result in answer.results:
        known = [each for each in result.credential_infos if each.mechanism in SCRAM_BY_CODE]
        found.append(
            User(
                name=result.user,
                mechanisms=tuple(SCRAM_BY_CODE[each.mechanism].name for each in known),
                iterations=max((each.iterations for each in known), default=0),
            )
        )
    return sorted(found, key=lambda user: user.name)


def find(wire: Wire, name: str) -> User | None:
    """Return a user, if there is one of this name."""
    return next((user for user in users(wire) if user.name == name), None)


def set_password(
    wire: Wire, name: str, password: str, mechanisms: Iterable[str], iterations: int = ITERATIONS
) -> None:
    """Give a user a password; the password itself is not sent."""
    upsertions = []
    for mechanism in mechanisms:
        scram = SCRAM_BY_NAME[mechanism]
        salt = os.urandom(SALT_BYTES)
        upsertions.append(
            ScramCredentialUpsertion(
                name=name,
                mechanism=scram.code,
                iterations=iterations,
                salt=salt,
                salted_password=salt_password(scram, password.encode(), salt, iterations),
            )
        )
    _alter(wire, AlterUserScramCredentialsRequest(upsertions=upsertions))


def delete(wire: Wire, name: str, mechanisms: Sequence[str]) -> None:
    """Delete a user's passwords."""
    deletions = [
        ScramCredentialDeletion(name=name, mechanism=SCRAM_BY_NAME[each].code)
        for each in mechanisms
    ]
    _alter(wire, AlterUserScramCredentialsRequest(deletions=deletions))


def _alter(wire: Wire, request: AlterUserScramCredentialsRequest) -> None:
    def ask() -> tuple[int, None]:
        answer = wire.ask_any(request, AlterUserScramCredentialsResponse)
        for result in answer.results:
            if result.error_code not in (ErrorCode.NONE, *NOT_YET):
                said = result.error_message or f"error {result.error_code}"
                raise AdminError(f"User {result.user} was not changed: {said}")
        return next((result.error_code for result in answer.results if result.error_code), 0), None

    settled(ask, "The user was not changed")
