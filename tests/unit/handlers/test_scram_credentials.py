"""The APIs of credentials, in a dialogue with a node."""

from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.support.talk.dialogue import Dialogue


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    return Dialogue(tmp_path)


def upsert(talk: Dialogue, *users: tuple[str, int]) -> list[int]:
    upsertions = [
        ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=4096, salt=b"salt", salted_password=b"x" * 32
        )
        for name, mechanism in users
    ]
    answer = talk.ask(AlterUserScramCredentialsRequest(upsertions=upsertions))
    return [result.error_code for result in answer.results]


def describe(talk: Dialogue, *names: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    named = [UserName(name=name) for name in names] if names else None
    answer: Any = talk.ask(DescribeUserScramCredentialsRequest(users=named))
    return {
        result.user: (
            result.error_code,
            [(info.mechanism, info.iterations) for info in result.credential_infos],
        )
        for result in answer.results
    }


def test_users_are_described_once_they_are_committed(talk: Dialogue) -> None:
    assert describe(talk) == {}
    assert upsert(talk, ("bob", 2), ("alice", 1), ("bob", 1)) == [0, 0]
    assert describe(talk) == {"alice": (0, [(1, 4096)]), "bob": (0, [(1, 4096), (2, 4096)])}
    assert describe(talk, "alice", "carol") == {
        "alice": (0, [(1, 4096)]),
        "carol": (ErrorCode.RESOURCE_NOT_FOUND, []),
    }


def test_a_disk_that_refuses_metadata_is_an_error_and_changes_nothing(
    talk: Dialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(talk.node.quorum.raft, "propose", refuse)
        assert upsert(talk, ("alice", 1)) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert describe(talk) == {}


def test_a_user_that_is_named_twice(talk: Dialogue) -> None:
    upsert(talk, ("alice", 1))
    assert describe(talk, "alice", "alice") == {"alice": (ErrorCode.DUPLICATE_RESOURCE, [])}


def test_credentials_survive_a_restart(talk: Dialogue) -> None:
    upsert(talk, ("alice", 1))
    secret = talk.node.image.security.secret
    assert len(bytes.fromhex(secret)) == 32
    talk.restart()
    assert describe(talk) == {"alice": (0, [(1, 4096)])}
    assert talk.node.image.security.secret == secret


def test_a_deleted_user(talk: Dialogue) -> None:
    upsert(talk, ("alice", 1), ("alice", 2))
    deletions = [ScramCredentialDeletion(name="alice", mechanism=1)]
    talk.ask(AlterUserScramCredentialsRequest(deletions=deletions))
    assert describe(talk) == {"alice": (0, [(2, 4096)])}
