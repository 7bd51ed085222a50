"""Requests about delegation tokens, in a dialogue with a node that has a secret for them."""

from pathlib import Path
from typing import Any

from barnabas.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.support.talk.dialogue import Dialogue

SECRET = "the secret of all brokers of this cluster"


class TokenTalk(Dialogue):
    """A node with a secret for delegation tokens."""

    def __init__(self, folder: Path, settings: dict[str, object] | None = None) -> None:
        super().__init__(folder, settings)
        self.node.authentication.signer.use(SECRET)

    def restart(self, *, crash: bool = False) -> None:
        """Stop and start the node."""
        super().restart(crash=crash)
        self.node.authentication.signer.use(SECRET)

    def create(
        self, *renewers: str, owner: str = "", lifetime_ms: int = -1, version: int = 3
    ) -> Any:
        """Ask for a token; names of principals are written as `User:alice`."""
        kind, _, name = owner.partition(":")
        parts = [renewer.partition(":") for renewer in renewers]
        request = CreateDelegationTokenRequest(
            owner_principal_type=kind,
            owner_principal_name=name,
            renewers=[CreatableRenewers(principal_type=k, principal_name=n) for k, _, n in parts],
            max_lifetime_ms=lifetime_ms,
        )
        return self.ask(request, version)

    def renew(self, hmac: bytes, period_ms: int = -1) -> Any:
        """Ask that a token expires later."""
        return self.ask(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms))

    def expire(self, hmac: bytes, period_ms: int = -1) -> Any:
        """Ask that a token expires."""
        return self.ask(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms))

    def describe(self, *owners: str) -> Any:
        """Ask for the tokens of some owners, or for all."""
        parts = [owner.partition(":") for owner in owners]
        named = [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, _, name in parts
        ]
        return self.ask(DescribeDelegationTokenRequest(owners=named or None))

    def ids(self, *owners: str) -> list[str]:
        """Return the ids of the tokens that are described."""
        return [token.token_id for token in self.describe(*owners).tokens]
