"""Explains in one sentence why a job stopped, and decides whether a retry can help.

Spark wraps errors in several layers: a query's exception has a Python traceback inside a Java stack
inside a sentence. The innermost Python error is the cause; if there is none, Spark's first words
are.
"""

import re
from dataclasses import dataclass
from enum import Enum

SENTENCE_LENGTH_MAX = 400


class Remedy(Enum):
    """The reactions to a failure."""

    RETRY = "retry"
    """A broker or database is unreachable: retry without a limit, and show it."""
    RETRY_A_FEW_TIMES = "retry a few times"
    """A process died: retry a few times."""
    GIVE_UP = "give up"


@dataclass(frozen=True)
class Cause:
    """The cause that stopped a job."""

    sentence: str
    remedy: Remedy


_PYTHON_ERROR = re.compile(
    r"^(?:\w+: )?(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): (?P<text>.+)$",
    re.MULTILINE,
)
_SPARK_FRAME = re.compile(
    r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: |SQLSTATE: \w+", re.DOTALL
)
_WRAPPERS = {"SparkException", "PythonException", "StreamingQueryException", "Py4JException"}

_AWAY = (
    "FetchError",
    "LinkError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "BrokenPipeError",
    "TimeoutError",
)
_AWAY_WORDS = (
    "_TRANSPORT",
    "_ALL_BROKERS_DOWN",
    "_TIMED_OUT",
    "REQUEST_TIMED_OUT",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER",
    "Connection refused",
    "Connection reset",
    "Broker transport failure",
    "No broker answered",
    "where no broker answers",
    "timed out",
)
_DIED = ("DeliveryError",)
"""A transaction that its coordinator ended; the batch is repeated in a new one."""
_DIED_WORDS = (
    "Python worker exited unexpectedly",
    "Python worker failed to connect back",
    "ExecutorLostFailure",
    "Executor heartbeat timed out",
    "STREAMING_PYTHON_RUNNER_INITIALIZATION_FAILURE",
    "EOFException",
    "EOFError",
)


def explain(text: str) -> Cause:
    """Interpret Spark's error of a failure."""
    found = [m for m in _PYTHON_ERROR.finditer(text) if _last(m["name"]) not in _WRAPPERS]
    if not found:
        return Cause(_shortened(_first_line(text)), _remedy("", text))
    name, sentence = _last(found[-1]["name"]), found[-1]["text"].strip()
    shown = sentence if _is_ours(found[-1]["name"]) else f"{name}: {sentence}"
    return Cause(_shortened(shown), _remedy(name, sentence, text))


def _remedy(name: str, *texts: str) -> Remedy:
    if name in _AWAY or any(word in texts[0] for word in _AWAY_WORDS):
        return Remedy.RETRY
    if name in _DIED or any(word in texts[-1] for word in _DIED_WORDS):
        return Remedy.RETRY_A_FEW_TIMES
    return Remedy.GIVE_UP


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _is_ours(name: str) -> bool:
    return name.startswith("barnabas.")


def _first_line(text: str) -> str:
    lines = [line.strip() for line in _SPARK_FRAME.sub("", text).splitlines()]
    return next((line for line in lines if line), "Spark gave no reason")


def _shortened(sentence: str) -> str:
    words = " ".join(sentence.split())
    return words if len(words) <= SENTENCE_LENGTH_MAX else f"{words[:SENTENCE_LENGTH_MAX]} ..."
