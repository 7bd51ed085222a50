"""Column checks that the helpers share. They fail when a query is built, not when it runs."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, TimestampType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ColumnError(ValueError):
    """A column is missing, of the wrong type, or not unique; the message says what to do."""


def names(columns: str | Sequence[str]) -> list[str]:
    """Return one name or several as a list."""
    return [columns] if isinstance(columns, str) else list(columns)


def require(frame: "DataFrame", wanted: Iterable[str]) -> None:
    """Refuse a frame that lacks a column."""
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise ColumnError(
            f"There is no column {' nor '.join(missing)}; "
            f"the columns are {', '.join(frame.columns)}"
        )


def require_time(frame: "DataFrame", name: str) -> None:
    """Refuse a column that is not a timestamp."""
    require(frame, [name])
    kind: DataType = frame.schema[name].dataType
    if not isinstance(kind, TimestampType):
        raise ColumnError(
            f"Column {name} is {kind.simpleString()}, and a watermark needs a timestamp: "
            f'.withColumn("{name}", F.to_timestamp("{name}")) makes it one'
        )


def refuse_twice(first: Iterable[str], second: Iterable[str], remedy: str) -> None:
    """Refuse columns of the same name; like Spark, ignore upper and lower case."""
    taken = {name.lower() for name in first}
    twice = [name for name in second if name.lower() in taken]
    if twice:
        raise ColumnError(f"Column {' and '.join(twice)} would be there twice; {remedy}")
