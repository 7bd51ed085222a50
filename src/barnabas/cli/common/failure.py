"""Report errors of commands: one sentence on stderr that says what to change, and exit code 1.

Commands raise `CommandError` for their own errors. Errors of librdkafka become a sentence here, so
that users see no traceback for errors that they can cause.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from barnabas.admin.admin_errors import AdminError, kafka_sentence
from barnabas.wire.wire_failures import LinkError, RefusedError


class CommandError(AdminError):
    """A command failed; the message says what to change."""


@contextmanager
def reported() -> Iterator[None]:
    """Convert exceptions of a command to a message and an exit code."""
    try:
        yield
    except AdminError as error:
        fail(str(error))
    except BrokenPipeError:
        quiet_exit()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        fail(sentence)


def fail(sentence: str) -> NoReturn:
    """Print an error and exit."""
    sys.stderr.write(f"Error: {sentence}\n")
    sys.exit(1)


def warn(sentence: str) -> None:
    """Print a warning."""
    sys.stderr.write(f"{sentence}\n")


def quiet_exit() -> NoReturn:
    """Exit silently: the reader of our output has closed the pipe."""
    # Python would flush its buffer at exit, and fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def _sentence(error: Exception) -> str | None:
    """Return the message for an error of a broker, librdkafka or the system; None for a bug."""
    if isinstance(error, RefusedError):
        return f"{error.what}: {_code_sentence(error.code)}"
    if isinstance(error, LinkError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'input'}: {error.strerror or error}"
    client = sys.modules.get("barnabas.client.errors")
    if client is not None and isinstance(error, client.ClientError):
        return str(error)
    kafka = sys.modules.get("confluent_kafka")
    if kafka is None or not isinstance(error, kafka.KafkaException):
        return None
    carried = error.args[0] if error.args else error
    return kafka_sentence(carried)


def _code_sentence(code: int) -> str:
    from confluent_kafka import KafkaError

    return kafka_sentence(KafkaError(code))
