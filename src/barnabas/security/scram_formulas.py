"""The formulas and the message syntax of SCRAM (RFC 5802, RFC 7677), for both ends.

    SaltedPassword = PBKDF2(password, salt, iterations)
    ClientKey      = HMAC(SaltedPassword, "Client Key")     StoredKey = H(ClientKey)
    ServerKey      = HMAC(SaltedPassword, "Server Key")
    ClientProof    = ClientKey XOR HMAC(StoredKey, AuthMessage)

A broker stores StoredKey and ServerKey. With these, a thief of the metadata cannot log in as the
user. As in Kafka, names and passwords are the UTF-8 bytes that the client sends, without SASLprep.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from barnabas.metadata.security_records import (
    SCRAM_ITERATIONS_MIN,
    USER_BYTES_MAX,
    ScramCredentialChanged,
)
from barnabas.security.authentication_failures import AuthenticationFailedError

SALT_BYTES = 32
NONCE_BYTES = 24


@dataclass(frozen=True, slots=True)
class ScramMechanism:
    """One of Kafka's two variants of SCRAM."""

    name: str
    code: int
    """Its number in the requests about credentials."""
    digest: str
    digest_bytes: int


SCRAM_SHA_256: Final = ScramMechanism("SCRAM-SHA-256", 1, "sha256", 32)
SCRAM_SHA_512: Final = ScramMechanism("SCRAM-SHA-512", 2, "sha512", 64)
SCRAM_BY_NAME = {each.name: each for each in (SCRAM_SHA_512, SCRAM_SHA_256)}
"""The mechanisms, the stronger one first."""
SCRAM_BY_CODE = {each.code: each for each in SCRAM_BY_NAME.values()}


@dataclass(frozen=True, slots=True)
class ScramKeys:
    """The keys with which a server verifies a client and proves its own identity."""

    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


def salt_password(
    mechanism: ScramMechanism, password: bytes, salt: bytes, iterations: int
) -> bytes:
    """Return the salted password: a millisecond of work or more, and others can run meanwhile."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password, salt, iterations)


def client_key(mechanism: ScramMechanism, salted_password: bytes) -> bytes:
    """Return the key of which a client proves its knowledge."""
    return hmac.digest(salted_password, b"Client Key", mechanism.digest)


def hashed(mechanism: ScramMechanism, key: bytes) -> bytes:
    """Return H(key)."""
    return hashlib.new(mechanism.digest, key).digest()


def keys_of(mechanism: ScramMechanism, salted_password: bytes) -> ScramKeys:
    """Return the keys that a server stores for a salted password."""
    server_key = hmac.digest(salted_password, b"Server Key", mechanism.digest)
    return ScramKeys(hashed(mechanism, client_key(mechanism, salted_password)), server_key)


def sign(mechanism: ScramMechanism, key: bytes, auth_message: bytes) -> bytes:
    """Return a signature of the whole dialogue."""
    return hmac.digest(key, auth_message, mechanism.digest)


def xor(left: bytes, right: bytes) -> bytes:
    """Combine a key with a signature by XOR, or separate them. Both must have the same length."""
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def as_base64(content: bytes) -> bytes:
    """Write bytes as an attribute's value."""
    return base64.b64encode(content)


def from_base64(text: bytes) -> bytes:
    """Read an attribute's value; refuse everything but strict base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AuthenticationFailedError("an attribute is not valid base64") from None


def credential(
    mechanism: ScramMechanism, user: str, password: str, salt: bytes, iterations: int
) -> ScramCredentialChanged:
    """Return the record of a user's credential."""
    salted = salt_password(mechanism, password.encode(), salt, iterations)
    keys = keys_of(mechanism, salted)
    return ScramCredentialChanged(
        user=user,
        mechanism=mechanism.name,
        salt=salt.hex(),
        stored_key=keys.stored_key.hex(),
        server_key=keys.server_key.hex(),
        iterations=iterations,
    )


def credentials_of(
    user: str, password: str, random_bytes: Callable[[int], bytes]
) -> list[ScramCredentialChanged]:
    """Return a user's credentials for all mechanisms, with new salts."""
    return [
        credential(mechanism, user, password, random_bytes(SALT_BYTES), SCRAM_ITERATIONS_MIN)
        for mechanism in SCRAM_BY_NAME.values()
    ]


# --- names ---

_ESCAPE = re.compile(b"=(.{0,2})", re.DOTALL)
_ESCAPED = {b"2C": b",", b"3D": b"="}


def write_name(name: str) -> bytes:
    """Escape the two characters that have a meaning in the syntax."""
    return name.encode().replace(b"=", b"=3D").replace(b",", b"=2C")


def read_name(text: bytes) -> str:
    """Read an escaped name; any other use of `=` is an error."""

    def unescaped(found: re.Match[bytes]) -> bytes:
        character = _ESCAPED.get(found[1])
        if character is None:
            raise AuthenticationFailedError("a name is not escaped as SCRAM demands")
        return character

    try:
        name = _ESCAPE.sub(unescaped, text).decode()
    except UnicodeDecodeError:
        raise AuthenticationFailedError("a name is not UTF-8") from None
    if not name or "\0" in name or len(text) > 3 * USER_BYTES_MAX:
        raise AuthenticationFailedError("a name is empty, too long, or has a NUL")
    return name


# --- messages ---

NONCE = re.compile(rb"[\x21-\x2b\x2d-\x7e]+")
_GS2_HEADER = re.compile(rb"(?P<binding>[ny]),(?:a=(?P<authzid>[^,\0]*))?,")
_CLIENT_FIRST_BARE = re.compile(
    rb"n=(?P<name>[^,\0]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<extensions>(?:,[A-Za-z]+=[^,\0]+)*)"
)
_CLIENT_FINAL = re.compile(
    rb"(?P<signed>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    rb"(?:,[A-Za-z]+=[^,\0]+)*),p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_SERVER_FIRST = re.compile(
    rb"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[1-9][0-9]{0,8})"
    rb"(?:,[A-Za-z]+=[^,\0]+)*"
)


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """The client's first message."""

    gs2_header: bytes
    bare: bytes
    """The message without its GS2 header, as both ends sign it."""
    user: str
    nonce: bytes
    extensions: dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """The client's second and last message."""

    signed: bytes
    """The message without its proof."""
    binding: bytes
    """The GS2 header, which the client repeats."""
    nonce: bytes
    proof: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """The server's answer to the client's first message."""

    nonce: bytes
    salt: bytes
    iterations: int


def parse_gs2_header(message: bytes) -> tuple[bytes, str | None]:
    """Return the GS2 header that a message begins with, and the authorization id in it.

    A client that demands channel binding (`p=`) is refused: Kafka has none.
    """
    found = _GS2_HEADER.match(message)
    if found is None:
        raise AuthenticationFailedError("the first message has no GS2 header without binding")
    return found[0], read_name(found["authzid"]) if found["authzid"] else None


def parse_client_first(message: bytes) -> ClientFirst:
    """Parse the client's first message."""
    header, authorization_id = parse_gs2_header(message)
    bare = message[len(header) :]
    found = _CLIENT_FIRST_BARE.fullmatch(bare)
    if found is None:  # also for `m=`, an extension that a server must support or refuse
        raise AuthenticationFailedError("the first message is not one of SCRAM")
    user = read_name(found["name"])
    if authorization_id not in (None, user):
        raise AuthenticationFailedError("the client asks to act as another user")
    extensions = dict(part.split(b"=", 1) for part in found["extensions"].split(b",") if part)
    return ClientFirst(header, bare, user, found["nonce"], extensions)


def parse_client_final(message: bytes) -> ClientFinal:
    """Parse the client's last message."""
    found = _CLIENT_FINAL.fullmatch(message)
    if found is None:
        raise AuthenticationFailedError("the last message is not one of SCRAM")
    proof = from_base64(found["proof"])
    return ClientFinal(found["signed"], from_base64(found["binding"]), found["nonce"], proof)


def parse_server_first(message: bytes) -> ServerFirst:
    """Parse the server's first message."""
    found = _SERVER_FIRST.fullmatch(message)
    if found is None:
        raise AuthenticationFailedError("the server's first message is not one of SCRAM")
    return ServerFirst(found["nonce"], from_base64(found["salt"]), int(found["iterations"]))
