"""Turns an error of Spark into one sentence that names the line in the file of statements.

Line breaks are put before the statements for Spark, so that the line numbers in Spark's errors are
those of the file.
"""

import re

from barnabas.spark.sql.statements import StatementError

_PLACE = re.compile(r"\bline (\d+),? pos \d+")
_PYTHON_ERROR = re.compile(r"^[\w.]+(?:Error|Exception): (.+)$", re.MULTILINE)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+.*$")
_NO_END = "must be executed with writeStream.start"


class located:  # noqa: N801 - reads as a phrase: with located(line)
    """Adds the line of the statement to errors of Spark."""

    def __init__(self, line: int) -> None:
        self._line = line

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from pyspark.errors import PySparkException

        if isinstance(error, PySparkException | ValueError):
            raise refusal(str(error), self._line) from error


def refusal(text: str, line: int) -> StatementError:
    """Return Spark's error about a statement as a sentence, with Spark's line if it has one."""
    found = _PLACE.search(text)
    place = int(found[1]) if found else line
    if _NO_END in text:
        return StatementError(line, "a source has no end; type: CREATE STREAM name AS SELECT ...")
    causes = _PYTHON_ERROR.findall(text)
    lines = (each.strip() for each in text.splitlines())
    first = next((each for each in lines if each), "Spark gave no reason")
    return StatementError(place, _SQLSTATE.sub("", causes[-1] if causes else first))
