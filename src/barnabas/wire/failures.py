"""How a request over the wire fails: a sentence that names the broker and says what to change."""


class LinkError(Exception):
    """A broker could not be reached, or did not answer as one."""


class RefusedError(LinkError):
    """A broker answered with an error code."""

    def __init__(self, what: str, code: int, name: str) -> None:
        super().__init__(f"{what}: {name}")
        self.what = what
        self.code = code
