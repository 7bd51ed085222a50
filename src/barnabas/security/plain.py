"""The server's end of PLAIN (RFC 4616): a user name and a password in one message.

    [authorization id] NUL user NUL password

There is no second store of passwords: the password is checked against the user's SCRAM credential.
That takes a key derivation of milliseconds, which runs on a thread. Correct passwords are
remembered as HMACs under a key of this process, so that clients can reconnect without a key
derivation. An entry is valid only while the user's credential is the same.
"""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from barnabas.metadata.security_records import USER_BYTES_MAX
from barnabas.model.callers import Principal
from barnabas.model.steps import Steps
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.mechanism import Proven, Reply
from barnabas.security.scram import USER, Credentials, Verifier
from barnabas.security.scram_formulas import (
    SCRAM_BY_NAME,
    SCRAM_SHA_512,
    ScramMechanism,
    keys_of,
    salt_password,
)

REMEMBERED_MAX = 1000
PASSWORD_BYTES_MAX = 4096


class Remembered:
    """Recent correct passwords, each as an HMAC; the least recently used is dropped first."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._key = b""
        self._known: OrderedDict[str, bytes] = OrderedDict()

    def has(self, user: str, password: bytes, verifier: Verifier) -> bool:
        """Tell whether this password was correct for this credential."""
        known = self._known.get(user)
        if known is None or not hmac.compare_digest(known, self._digest(password, verifier)):
            return False
        self._known.move_to_end(user)
        return True

    def add(self, user: str, password: bytes, verifier: Verifier) -> None:
        """Remember a correct password."""
        self._known[user] = self._digest(password, verifier)
        self._known.move_to_end(user)
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)

    def _digest(self, password: bytes, verifier: Verifier) -> bytes:
        """Return the HMAC to store; it covers the credential and the password."""
        self._key = self._key or self._random_bytes(32)
        version = b"%d %d " % (verifier.iterations, len(verifier.salt)) + verifier.salt
        key = hmac.digest(self._key, version + verifier.keys.stored_key, "sha256")
        return hmac.digest(key, password, "sha256")


class PlainExchange:
    """One authentication with PLAIN."""

    def __init__(self, credentials: Credentials, remembered: Remembered) -> None:
        self._credentials = credentials
        self._remembered = remembered

    def reply(self, token: bytes) -> Steps[Reply]:
        """Check the user and the password."""
        user, password = _parse(token)
        mechanism, verifier = self._find(user)
        if not self._remembered.has(user, password, verifier):
            derive = partial(salt_password, mechanism, password, verifier.salt, verifier.iterations)
            salted = yield derive
            right = hmac.compare_digest(
                keys_of(mechanism, salted).stored_key, verifier.keys.stored_key
            )
            # The credential may have been replaced or deleted in the meantime.
            is_current = self._find(user) == (mechanism, verifier)
            if not (right and verifier.exists and is_current):
                raise AuthenticationFailedError("no such user, or another password")
            self._remembered.add(user, password, verifier)
        return Reply(b"", Proven(Principal(USER, user)))

    def _find(self, user: str) -> tuple[ScramMechanism, Verifier]:
        """Return the user's strongest credential; for an unknown user one that never matches."""
        for mechanism in SCRAM_BY_NAME.values():
            verifier = self._credentials.find(user, mechanism)
            if verifier.exists:
                return mechanism, verifier
        return SCRAM_SHA_512, self._credentials.find(user, SCRAM_SHA_512)


def _parse(token: bytes) -> tuple[str, bytes]:
    parts = token.split(b"\0")
    if len(parts) != 3:
        raise AuthenticationFailedError("the message is not one of PLAIN")
    authorization_id, user, password = parts
    is_short = len(user) <= USER_BYTES_MAX and len(password) <= PASSWORD_BYTES_MAX
    if not user or not password or not is_short:
        raise AuthenticationFailedError("the user or the password is empty, or too long")
    if authorization_id not in (b"", user):
        raise AuthenticationFailedError("the client asks to act as another user")
    try:
        return user.decode(), password
    except UnicodeDecodeError:
        raise AuthenticationFailedError("the user is not UTF-8") from None
