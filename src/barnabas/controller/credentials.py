"""Decides on changes to SCRAM credentials, and on the first ones of a cluster."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.metadata.features import SECURITY_LEVEL
from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.metadata.security_records import (
    SCRAM_ITERATIONS_MAX,
    SCRAM_ITERATIONS_MIN,
    USER_BYTES_MAX,
    ClusterSecretChanged,
    ScramCredentialChanged,
    ScramCredentialRemoved,
)
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

SALT_BYTES_MAX = 1024
SECRET_BYTES = 32
TOO_OLD = (
    "credentials need feature level 2; finalize it with `barnabas cluster upgrade` once all "
    "brokers run this release"
)


class Mechanism(NamedTuple):
    """The properties of a SCRAM mechanism that the controller needs."""

    name: str
    keys_of: Callable[[bytes], tuple[bytes, bytes]]
    """Returns StoredKey and ServerKey of a salted password."""


Item = ScramCredentialDeletion | ScramCredentialUpsertion


class Altered(NamedTuple):
    """The records of a request, and its response."""

    records: list[MetadataRecord]
    response: AlterUserScramCredentialsResponse


def alter_credentials(
    image: Image,
    request: AlterUserScramCredentialsRequest,
    mechanisms: Mapping[int, Mechanism],
    random_bytes: Callable[[int], bytes],
) -> Altered:
    """Set and delete credentials.

    If one item of a user is refused, no credential of that user is changed.
    """
    items: list[Item] = [*request.deletions, *request.upsertions]
    refused: dict[str, ApiError] = {}
    seen: set[tuple[str, int]] = set()
    for item in items:
        try:
            _check(image, item, mechanisms, seen)
        except ApiError as error:
            refused.setdefault(item.name, error)
        seen.add((item.name, item.mechanism))
    records: list[MetadataRecord] = [
        _record(item, mechanisms[item.mechanism]) for item in items if item.name not in refused
    ]
    if any(isinstance(record, ScramCredentialChanged) for record in records):
        records = [*cluster_secret(image, random_bytes), *records]
    results = [_result(name, refused.get(name)) for name in dict.fromkeys(i.name for i in items)]
    return Altered(records, AlterUserScramCredentialsResponse(results=results))


def cluster_secret(
    image: Image, random_bytes: Callable[[int], bytes]
) -> Sequence[ClusterSecretChanged]:
    """Return the record of the secret that all brokers share, unless there is one."""
    if image.security.secret or image.feature_level < SECURITY_LEVEL:
        return ()
    return (ClusterSecretChanged(secret=random_bytes(SECRET_BYTES).hex()),)


def first_credentials(
    image: Image, wanted: Sequence[ScramCredentialChanged]
) -> Sequence[ScramCredentialChanged]:
    """Return the credentials of the first admin, if the cluster has none at all."""
    if image.security.credentials or image.feature_level < SECURITY_LEVEL:
        return ()
    return wanted


def _check(
    image: Image,
    item: Item,
    mechanisms: Mapping[int, Mechanism],
    seen: set[tuple[str, int]],
) -> None:
    """Raise `ApiError` if one item of a request is invalid."""
    if image.feature_level < SECURITY_LEVEL:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, TOO_OLD)
    unacceptable = ErrorCode.UNACCEPTABLE_CREDENTIAL
    if not item.name or "\0" in item.name or len(item.name.encode()) > USER_BYTES_MAX:
        raise ApiError(unacceptable, f"name a user, in {USER_BYTES_MAX} bytes at most")
    mechanism = mechanisms.get(item.mechanism)
    if mechanism is None:
        raise ApiError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"there is no SCRAM mechanism {item.mechanism}; 1 is SCRAM-SHA-256, 2 SCRAM-SHA-512",
        )
    if (item.name, item.mechanism) in seen:
        raise ApiError(
            ErrorCode.DUPLICATE_RESOURCE, "the request has this user and mechanism more than once"
        )
    if isinstance(item, ScramCredentialDeletion):
        if (item.name, mechanism.name) not in image.security.credentials:
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND, f"the user has no {mechanism.name} credential"
            )
        return
    if not SCRAM_ITERATIONS_MIN <= item.iterations <= SCRAM_ITERATIONS_MAX:
        raise ApiError(
            unacceptable,
            f"{item.iterations} iterations are not between {SCRAM_ITERATIONS_MIN} and "
            f"{SCRAM_ITERATIONS_MAX}",
        )
    if not 0 < len(item.salt) <= SALT_BYTES_MAX or not item.salted_password:
        raise ApiError(unacceptable, "the salt or the salted password is empty, or too long")


def _record(
    item: ScramCredentialDeletion | ScramCredentialUpsertion, mechanism: Mechanism
) -> ScramCredentialChanged | ScramCredentialRemoved:
    if isinstance(item, ScramCredentialDeletion):
        return ScramCredentialRemoved(user=item.name, mechanism=mechanism.name)
    stored_key, server_key = mechanism.keys_of(bytes(item.salted_password))
    return ScramCredentialChanged(
        user=item.name,
        mechanism=mechanism.name,
        salt=bytes(item.salt).hex(),
        stored_key=stored_key.hex(),
        server_key=server_key.hex(),
        iterations=item.iterations,
    )


def _result(user: str, error: ApiError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user=user, error_message=None)
    return AlterUserScramCredentialsResult(
        user=user, error_code=error.code, error_message=error.message
    )
