"""The error for commands whose optional dependencies are not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.cli.common.failure import CommandError


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Convert an import error to an error with the pip command to run."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "barnabas":
            raise
        raise CommandError(
            f"This needs {error.name}, which is not installed; run: pip install 'barnabas[{extra}]'"
        ) from error
