"""What commands say where an optional part of Barnabas is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.cli.failure import CommandError


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Turn a missing package into the line to type."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "barnabas":
            raise
        raise CommandError(
            f"This needs {error.name}, which is not installed; type: "
            f"pip install 'barnabas[{extra}]'"
        ) from error
