"""Changes to SCRAM credentials: what is refused, with which code, and what is stored."""

import pytest

from barnabas.controller.credentials import (
    Altered,
    alter_credentials,
    cluster_secret,
    first_credentials,
)
from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import FeatureLevelChanged
from barnabas.metadata.security_records import (
    ClusterSecretChanged,
    ScramCredentialChanged,
    ScramCredentialRemoved,
)
from barnabas.model.errors import ErrorCode
from barnabas.node.cluster.controlling import MECHANISMS
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.security.scram_formulas import SCRAM_SHA_256, credential, salt_password

SHA_256, SHA_512 = 1, 2
SALT = b"salt of alice"


def random_bytes(count: int) -> bytes:
    return b"\x07" * count


def image(*users: str, level: int = 2, secret: str = "5e" * 32) -> Image:
    made = Image()
    made.replay(FeatureLevelChanged(level=level))
    if secret:
        made.replay(ClusterSecretChanged(secret=secret))
    for user in users:
        made.replay(credential(SCRAM_SHA_256, user, "password", SALT, 4096))
    return made


def upsertion(
    name: str = "alice",
    mechanism: int = SHA_256,
    iterations: int = 4096,
    salt: bytes = SALT,
    password: str = "password",
) -> ScramCredentialUpsertion:
    salted = salt_password(SCRAM_SHA_256, password.encode(), SALT, iterations) if password else b""
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )


def deletion(name: str = "alice", mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(metadata: Image, *items: ScramCredentialUpsertion | ScramCredentialDeletion) -> Altered:
    request = AlterUserScramCredentialsRequest(
        deletions=[item for item in items if isinstance(item, ScramCredentialDeletion)],
        upsertions=[item for item in items if isinstance(item, ScramCredentialUpsertion)],
    )
    return alter_credentials(metadata, request, MECHANISMS, random_bytes)


def codes(altered: Altered) -> dict[str, int]:
    return {result.user: result.error_code for result in altered.response.results}


def test_a_credential_keeps_what_a_verifier_needs() -> None:
    altered = alter(image(), upsertion())
    assert altered.records == [credential(SCRAM_SHA_256, "alice", "password", SALT, 4096)]
    assert codes(altered) == {"alice": 0}


def test_the_first_credential_brings_the_secret_of_the_cluster() -> None:
    altered = alter(image(secret=""), upsertion(), upsertion("bob"))
    secret, *credentials = altered.records
    assert secret == ClusterSecretChanged(secret="07" * 32)
    assert [type(record) for record in credentials] == [ScramCredentialChanged] * 2


def test_a_deletion() -> None:
    altered = alter(image("alice"), deletion())
    assert altered.records == [ScramCredentialRemoved(user="alice", mechanism="SCRAM-SHA-256")]


def test_a_deletion_needs_no_secret() -> None:
    assert len(alter(image("alice", secret=""), deletion()).records) == 1


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("a\0b"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("a" * 1025), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(salt=bytes(1025)), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(password=""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (deletion("bob"), ErrorCode.RESOURCE_NOT_FOUND),
        (deletion(mechanism=SHA_512), ErrorCode.RESOURCE_NOT_FOUND),
        (deletion(mechanism=7), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_refusals(
    item: ScramCredentialUpsertion | ScramCredentialDeletion, code: ErrorCode
) -> None:
    altered = alter(image("alice"), item)
    assert (codes(altered), altered.records) == ({item.name: code}, [])


@pytest.mark.parametrize(
    "items",
    [
        [upsertion(), upsertion()],
        [deletion(), deletion()],
        [deletion(), upsertion()],
        [upsertion(), upsertion(mechanism=SHA_512), upsertion()],
    ],
)
def test_a_doubled_user(items: list[ScramCredentialUpsertion | ScramCredentialDeletion]) -> None:
    altered = alter(image("alice"), *items)
    assert codes(altered) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert altered.records == []


def test_two_mechanisms_of_one_user() -> None:
    altered = alter(image("alice"), deletion(), upsertion(mechanism=SHA_512))
    assert (codes(altered), len(altered.records)) == ({"alice": 0}, 2)


def test_a_refused_user_does_not_hinder_others() -> None:
    altered = alter(image(), upsertion("bob"), upsertion(), upsertion("bob", SHA_512, 1))
    assert codes(altered) == {"alice": 0, "bob": ErrorCode.UNACCEPTABLE_CREDENTIAL}
    assert [record.user for record in altered.records] == ["alice"]  # type: ignore[union-attr]


def test_an_old_cluster_has_no_credentials() -> None:
    altered = alter(image(level=1, secret=""), upsertion())
    assert (codes(altered), altered.records) == ({"alice": ErrorCode.UNSUPPORTED_VERSION}, [])
    assert cluster_secret(image(level=1, secret=""), random_bytes) == ()


def test_the_first_admin_is_for_a_cluster_without_users() -> None:
    wanted = [credential(SCRAM_SHA_256, "admin", "password", SALT, 4096)]
    assert first_credentials(image(), wanted) == wanted
    assert first_credentials(image("alice"), wanted) == ()
    assert first_credentials(image(level=1, secret=""), wanted) == ()


def test_the_limits_are_inclusive() -> None:
    for iterations in (4096, 16384):
        assert codes(alter(image(), upsertion(iterations=iterations))) == {"alice": 0}
