"""The file of users and passwords, which `barnabas console password` writes.

    # a comment
    alice:scrypt$16384$8$5$SALT$HASH
    bob:scrypt$16384$8$5$SALT$HASH:read-only

Salt and hash are in base64. The numbers are scrypt's cost, block size and parallelism, so that they
can be raised for new passwords. The file is read again when it has changed.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from barnabas.admin.admin_errors import AdminError

COST, BLOCK, PARALLEL = 1 << 14, 8, 5
SALT_BYTES, HASH_BYTES = 16, 32
MEMORY_MAX = 256 << 20
READ_ONLY = "read-only"
PASSWORD_BYTES_MIN = 8
NAME_MAX = 128


@dataclass(frozen=True, slots=True)
class Scrypt:
    """One password, as scrypt made it unreadable."""

    cost: int
    block: int
    parallel: int
    salt: bytes
    digest: bytes

    def matches(self, password: str) -> bool:
        """Return whether this is the password."""
        found = _scrypt(password, self.salt, self.cost, self.block, self.parallel)
        return hmac.compare_digest(found, self.digest)

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(each).decode() for each in (self.salt, self.digest))
        return f"scrypt${self.cost}${self.block}${self.parallel}${salt}${digest}"


@dataclass(frozen=True, slots=True)
class KnownUser:
    """One line of the file."""

    name: str
    password: Scrypt
    read_only: bool

    def __str__(self) -> str:
        end = f":{READ_ONLY}" if self.read_only else ""
        return f"{self.name}:{self.password}{end}"


def new_user(name: str, password: str, *, read_only: bool) -> KnownUser:
    """Return a user with a new salt."""
    if not name or len(name) > NAME_MAX or not name.isprintable() or {":", "#"} & set(name):
        raise AdminError(f"{name!r} is not a user's name; write letters without : and #")
    if len(password.encode()) < PASSWORD_BYTES_MIN:
        raise AdminError(
            f"The password is shorter than {PASSWORD_BYTES_MIN} bytes; choose a longer"
        )
    salt = secrets.token_bytes(SALT_BYTES)
    digest = _scrypt(password, salt, COST, BLOCK, PARALLEL)
    return KnownUser(name, Scrypt(COST, BLOCK, PARALLEL, salt, digest), read_only)


NO_USER = Scrypt(COST, BLOCK, PARALLEL, b"\0" * SALT_BYTES, b"\0" * HASH_BYTES)
"""What the password of an unknown user is compared with, so that it takes as long."""


class PasswordFile:
    """The users of a file."""

    def __init__(self, path: Path) -> None:
        """Read the file; raise where it cannot be read or has no user."""
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._users: dict[str, KnownUser] = {}
        self._refresh()
        if not self._users:
            raise AdminError(
                f"{path} has no users; add one: barnabas console password alice --passwords {path}"
            )

    def check(self, name: str, password: str) -> KnownUser | None:
        """Return the user if the password is right; unknown users take as long as known ones."""
        self._refresh()
        found = self._users.get(name)
        is_right = (found.password if found is not None else NO_USER).matches(password)
        return found if is_right else None

    def _refresh(self) -> None:
        try:
            state = self._path.stat()
            stamp = (state.st_mtime_ns, state.st_size)
            if stamp != self._stamp:
                self._users = read_users(self._path)
                self._stamp = stamp
        except OSError as error:
            raise AdminError(f"--passwords {self._path}: {error.strerror}") from None


def read_users(path: Path) -> dict[str, KnownUser]:
    """Return the users of a file, by name."""
    found = {}
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = raw.strip()
        if line and not line.startswith("#"):
            user = _parse(line)
            if user is None:
                raise AdminError(
                    f"{path}, line {number}: not a user; `barnabas console password` writes lines"
                )
            found[user.name] = user
    return found


def put_user(path: Path, user: KnownUser) -> None:
    """Add a user to a file, or replace the line of that user; only the owner can read the file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [line for line in lines if line.strip().partition(":")[0] != user.name]
    unfinished = path.with_name(f"{path.name}.tmp")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join([*kept, str(user)]) + "\n")
    unfinished.replace(path)


def _parse(line: str) -> KnownUser | None:
    name, _, rest = line.partition(":")
    text, _, role = rest.partition(":")
    try:
        kind, cost, block, parallel, salt, digest = text.split("$")
        password = Scrypt(
            int(cost),
            int(block),
            int(parallel),
            base64.b64decode(salt, validate=True),
            base64.b64decode(digest, validate=True),
        )
    except (ValueError, binascii.Error):
        return None
    needed = 128 * password.cost * password.block
    is_valid = kind == "scrypt" and name and role in ("", READ_ONLY) and 0 < needed <= MEMORY_MAX
    return KnownUser(name, password, role == READ_ONLY) if is_valid else None


def _scrypt(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    return hashlib.scrypt(
        password.encode(),
        salt=salt,
        n=cost,
        r=block,
        p=parallel,
        maxmem=2 * MEMORY_MAX,
        dklen=HASH_BYTES,
    )
