"""The error of a failed authentication."""

from barnabas.model.errors import BrokerError


class AuthenticationFailedError(BrokerError):
    """A client did not prove its identity. The reason goes to the log; the client gets a fixed
    text."""
