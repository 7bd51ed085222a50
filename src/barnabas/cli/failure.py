"""How commands fail: one sentence on stderr that says what to change, exit code 1.

Commands raise `CommandError` for what they find out themselves. What librdkafka reports is
turned into a sentence here, so that no traceback reaches a user for anything a user can cause.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from barnabas.wire.failures import LinkError, RefusedError

ADVICE_BY_NAME = {
    "TOPIC_AUTHORIZATION_FAILED": "ask for an ACL on the topic",
    "GROUP_AUTHORIZATION_FAILED": "ask for an ACL on the group",
    "CLUSTER_AUTHORIZATION_FAILED": "ask for an ACL on the cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "ask for an ACL on the transactional id",
    "_AUTHENTICATION": "check -X sasl.mechanism, sasl.username and sasl.password",
    "_SSL": "check -X security.protocol and the certificates",
    "_UNSUPPORTED_FEATURE": "this broker does not serve the call",
    "UNSUPPORTED_VERSION": "this broker does not serve the call",
    "MSG_SIZE_TOO_LARGE": "send less, or raise max.message.bytes on the topic",
}


class CommandError(Exception):
    """A command cannot go on; the text says what to change."""


def no_broker(bootstrap: str) -> CommandError:
    """Return the error for an address where nobody answers."""
    return CommandError(
        f"No broker answered at {bootstrap}; start one with `make run` or pass --bootstrap"
    )


@contextmanager
def reported() -> Iterator[None]:
    """Turn what a command raises into a sentence and an exit code."""
    try:
        yield
    except CommandError as error:
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
    """Say what is wrong and leave."""
    sys.stderr.write(f"Error: {sentence}\n")
    sys.exit(1)


def warn(sentence: str) -> None:
    """Say what is odd and go on."""
    sys.stderr.write(f"{sentence}\n")


def quiet_exit() -> NoReturn:
    """Leave without a word: whoever read our output has had enough of it."""
    # What Python still holds would be flushed at exit, and fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def _sentence(error: Exception) -> str | None:
    """Word what a broker, librdkafka or the system reported; None for a bug of ours."""
    if isinstance(error, RefusedError):
        return f"{error.what}: {_code_sentence(error.code)}"
    if isinstance(error, LinkError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'input'}: {error.strerror or error}"
    kafka = sys.modules.get("confluent_kafka")
    if kafka is None or not isinstance(error, kafka.KafkaException):
        return None
    carried = error.args[0] if error.args else error
    return kafka_sentence(carried)


def kafka_sentence(carried: object) -> str:
    """Word a KafkaError, with advice where there is any."""
    name = carried.name() if hasattr(carried, "name") else ""
    text = carried.str() if hasattr(carried, "str") else str(carried)
    advice = ADVICE_BY_NAME.get(name)
    return f"{text}; {advice}" if advice else str(text)


def _code_sentence(code: int) -> str:
    from confluent_kafka import KafkaError

    return kafka_sentence(KafkaError(code))
