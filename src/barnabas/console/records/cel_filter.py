"""Filters records by a CEL expression, in a worker process that is killed when it takes too long.

    with CelFilter("value.amount > 100") as cel:
        matching = cel.matching(found)

An expression sees `key`, `value`, `headers`, `topic`, `partition`, `offset`, `timestamp_ms` and
`size_bytes`. JSON is there as fields, other text as text, and other bytes as bytes in hexadecimal.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from barnabas.admin.admin_errors import AdminError
from barnabas.console.records.found_records import FoundRecord

LIMIT_S = 2.0
START_LIMIT_S = 15.0
ANSWER_BYTES_MAX = 1 << 20
BATCH = 200
VALUE_BYTES_MAX = 256 << 10
"""Of larger values an expression sees no fields."""
WORKER = (sys.executable, "-m", "barnabas.console.records.cel_worker")
KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "SYSTEMROOT")
"""The worker gets no others: some hold passwords."""


class CelError(AdminError):
    """An expression is wrong, or took too long."""


class CelFilter:
    """One expression, and the process that evaluates it."""

    def __init__(self, expression: str, limit_s: float = LIMIT_S) -> None:
        self._expression = expression
        self._limit_s = limit_s
        self._worker: subprocess.Popen[bytes] | None = None
        self.errors = 0
        """Records that the expression could not be applied to."""
        self.reason: str | None = None
        """Why, for the last of them."""

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def matching(self, found: Sequence[FoundRecord]) -> list[FoundRecord]:
        """Return the records that match; raise `CelError` if the expression takes too long."""
        matches: list[FoundRecord] = []
        for first in range(0, len(found), BATCH):
            part = found[first : first + BATCH]
            answer = self._ask({"records": [variables(each) for each in part]}, self._limit_s)
            matches += [part[number] for number in answer["matches"]]
            self.errors += int(answer["errors"])
            self.reason = answer["reason"] or self.reason
        return matches

    def stop(self) -> None:
        """End the process."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.communicate()

    def _start(self) -> None:
        environment = {key: os.environ[key] for key in KEPT_VARIABLES if key in os.environ}
        self._worker = subprocess.Popen(  # noqa: S603 - our own module
            WORKER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        answer = self._ask({"cel": self._expression}, START_LIMIT_S)
        if "missing" in answer:
            self.stop()
            raise CelError(
                "CEL needs common-expression-language, which is not installed; run: "
                "pip install 'barnabas[console]'"
            )
        if "invalid" in answer:
            self.stop()
            raise CelError(f"The CEL expression is not valid: {answer['invalid']}")

    def _ask(self, question: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """Send a line and return the answer; replace the process if that takes too long."""
        worker = self._worker
        assert worker is not None, "the filter was stopped"
        try:
            received = _exchange(worker, json.dumps(question).encode() + b"\n", limit_s)
        except (TimeoutError, BrokenPipeError) as error:
            self.stop()
            raise CelError(
                f"The CEL expression was stopped after {limit_s:.0f} s; make it simpler"
                if isinstance(error, TimeoutError)
                else "The CEL expression needed too much memory; make it simpler"
            ) from None
        found: dict[str, Any] = json.loads(received)
        return found


def _exchange(worker: "subprocess.Popen[bytes]", question: bytes, limit_s: float) -> bytes:
    """Write a line and return the answer; raise where it takes too long or the process ends."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    source, target = worker.stdout.fileno(), worker.stdin.fileno()
    os.set_blocking(target, False)
    deadline_s = time.monotonic() + limit_s
    left, received = memoryview(question), b""
    while not received.endswith(b"\n"):
        poller = select.poll()
        poller.register(source, select.POLLIN)
        if left:
            poller.register(target, select.POLLOUT)
        wait_s = deadline_s - time.monotonic()
        ready = dict(poller.poll(max(0, round(wait_s * 1000)))) if wait_s > 0 else {}
        if not ready:
            raise TimeoutError
        if target in ready:
            left = left[os.write(target, left) :]
        if source in ready:
            part = os.read(source, 1 << 16)
            received += part
            if not part or len(received) > ANSWER_BYTES_MAX:
                raise BrokenPipeError
    return received


def variables(found: FoundRecord) -> dict[str, Any]:
    """Return what an expression sees of a record."""
    record = found.record
    return {
        "topic": found.topic,
        "partition": found.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "size_bytes": found.size_bytes,
        "key": _value(record.key),
        "value": _value(record.value),
        "headers": {name: _value(value) for name, value in record.headers},
    }


def _value(content: bytes | None) -> Any:  # noqa: ANN401 - any JSON value
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content[:VALUE_BYTES_MAX].hex()
    if content[:1] not in (b"{", b"[") or len(content) > VALUE_BYTES_MAX:
        return text[:VALUE_BYTES_MAX]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
