"""Errors of requests over the wire; the message names the broker and says what to change."""


class LinkError(Exception):
    """A broker could not be reached, or its answer was invalid."""


class DemandError(LinkError):
    """A broker demands TLS or authentication, and the client does not use it."""


class LoginError(LinkError):
    """A broker refuses the client's credentials; trying again would not help."""


class UnsupportedPropertyError(LinkError):
    """A property is valid for librdkafka, but a link does not support it."""


class UnservedError(LinkError):
    """A broker does not serve an API, or not in a version that is known here."""


class RefusedError(LinkError):
    """A broker answered with an error code."""

    def __init__(self, what: str, code: int, name: str) -> None:
        super().__init__(f"{what}: {name}")
        self.what = what
        self.code = code
