"""The interface of a SASL mechanism: tokens in, tokens out, in the end a principal.

An exchange makes its replies in steps (`model/steps.py`): a step that takes long, such as the key
derivation of a password, is yielded as a call that another thread makes.
"""

from dataclasses import dataclass
from typing import Protocol

from barnabas.model.callers import Principal
from barnabas.model.steps import Steps


@dataclass(frozen=True, slots=True)
class Proven:
    """The client has proved its identity."""

    principal: Principal
    lifetime_ms: int | None = None
    """How long its credential stays valid, if it expires. At least 1."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A message to the client, and whether it is the last one."""

    token: bytes
    proven: Proven | None = None


class Exchange(Protocol):
    """One authentication with one mechanism."""

    def reply(self, token: bytes) -> Steps[Reply]:
        """Make the reply to a token; raise `AuthenticationFailedError` if it is refused."""
