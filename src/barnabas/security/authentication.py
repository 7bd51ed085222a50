"""Authentication on one broker: what all of its connections share.

It makes an `Authenticator` for each connection to a SASL listener, with the mechanisms that the
listener's settings name.
"""

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import ScramCredentialChanged
from barnabas.model.callers import Listener
from barnabas.model.errors import ConfigError
from barnabas.model.security_settings import ListenerSettings
from barnabas.model.settings import Settings
from barnabas.model.timers import Timers
from barnabas.security import oauth
from barnabas.security.authenticator import Authenticator
from barnabas.security.mechanism import Exchange
from barnabas.security.oauth import OauthExchange
from barnabas.security.oauth_keys import TokenKeys, TokenRules, require_library
from barnabas.security.plain import PlainExchange, Remembered
from barnabas.security.scram import Credentials, ScramExchange
from barnabas.security.scram_formulas import SCRAM_BY_NAME
from barnabas.security.token_credentials import TokenCredentials
from barnabas.security.token_signing import TokenSigner

PLAIN = "PLAIN"
DEFAULT_MECHANISMS = ListenerSettings(name="").mechanisms


class Authentication:
    """The state that all authenticators of a broker share."""

    def __init__(
        self,
        settings: Settings,
        image: Callable[[], SecurityImage],
        timers: Timers,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        security = settings.security
        self._timers = timers
        self.random_bytes = random_bytes
        """Generates random bytes for secrets."""
        self.first_admin: Sequence[ScramCredentialChanged] = ()
        """The credentials that a cluster without any gets from its controller."""
        self._lifetime_ms = security.reauthentication_ms
        self._credentials = Credentials(image, random_bytes)
        self._remembered = Remembered(random_bytes)
        self.signer = TokenSigner()
        """Makes the HMACs of delegation tokens; the edge sets its secret."""
        self._tokens = TokenCredentials(self.signer, image, timers)
        self.token_keys = TokenKeys()
        """The keys that OAUTHBEARER tokens are checked with; the edge sets them."""
        self._token_rules = TokenRules(
            issuer=security.oauth_issuer,
            audience=security.oauth_audience,
            principal_claim=security.oauth_principal_claim,
            skew_ms=security.oauth_clock_skew_ms,
        )
        self._makers: dict[str, Callable[[], Exchange]] = {
            **{name: partial(self._scram, name) for name in SCRAM_BY_NAME},
            PLAIN: self._plain,
            oauth.NAME: self._oauth,
        }
        self._by_listener = {
            each.name: self._named(each.mechanisms, each.name)
            for each in settings.listeners
            if each.has_sasl
        }
        self.is_needed = bool(self._by_listener)
        """Whether a listener demands that clients authenticate."""
        self.has_oauth = any(oauth.NAME in named for named in self._by_listener.values())
        """Whether a listener accepts OAUTHBEARER tokens."""
        if self.has_oauth:
            require_library()
            if not security.oauth_keys:
                raise ConfigError(
                    "OAUTHBEARER needs the keys of the issuer; set security.oauth_keys to a file "
                    "with a JSON Web Key Set, or to its https URL"
                )

    def authenticator(self, listener: Listener) -> Authenticator:
        """Return the state machine of a new connection."""
        mechanisms = self._by_listener.get(listener.name)
        if mechanisms is None:
            mechanisms = self._named(DEFAULT_MECHANISMS, listener.name)
        return Authenticator(mechanisms, self._lifetime_ms)

    def _named(
        self, mechanisms: tuple[str, ...], listener: str
    ) -> dict[str, Callable[[], Exchange]]:
        unknown = [name for name in mechanisms if name not in self._makers]
        if unknown or not mechanisms:
            raise ConfigError(
                f"listener {listener}: mechanisms has {unknown}; write some of "
                f"{', '.join(self._makers)}"
            )
        return {name: self._makers[name] for name in mechanisms}

    def _scram(self, name: str) -> Exchange:
        return ScramExchange(
            SCRAM_BY_NAME[name], self._credentials, self._tokens, self.random_bytes
        )

    def _plain(self) -> Exchange:
        return PlainExchange(self._credentials, self._remembered)

    def _oauth(self) -> Exchange:
        clocks = self._timers
        return OauthExchange(
            self.token_keys, self._token_rules, lambda: (clocks.now_ms, clocks.wall_ms)
        )
