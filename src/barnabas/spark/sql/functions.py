"""Registers Python functions for queries: `CREATE FUNCTION net FROM 'shop_functions' RETURNS
DOUBLE`.

The module is searched beside the file of statements, then on Python's path. Its functions are sent
to the workers by value, so that the workers do not need the module.
"""

import importlib
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from barnabas.spark.sql.statements import CreateFunction, StatementError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES: dict[object, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    bytes: "BINARY",
    date: "DATE",
    datetime: "TIMESTAMP",
    timedelta: "INTERVAL DAY TO SECOND",
    Decimal: "DECIMAL(38, 18)",
}
"""The Spark type of a function's result, by its annotation."""


def create_function(spark: "SparkSession", statement: CreateFunction, folder: Path) -> None:
    """Register a function for queries."""
    found = load(statement, folder)
    is_ready = hasattr(found, "returnType")  # set by @udf and similar decorators
    if is_ready and statement.returns is not None:
        raise StatementError(
            statement.line,
            f"{statement.function} already declares its return type; leave RETURNS out",
        )
    returns = None if is_ready else statement.returns or returned_type(statement, found)
    spark.udf.register(statement.name, found, returns)


def load(statement: CreateFunction, folder: Path) -> Callable[..., Any]:
    """Import a function."""
    from pyspark import cloudpickle

    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(statement.module)
    except ImportError as error:
        raise StatementError(
            statement.line,
            f"module {statement.module} cannot be imported ({error}); put {statement.module}.py "
            f"into {folder}, or install it",
        ) from error
    found = getattr(module, statement.function, None)
    if not callable(found):
        names = ", ".join(name for name in vars(module) if not name.startswith("_")) or "nothing"
        raise StatementError(
            statement.line,
            f"module {statement.module} has no function {statement.function}; it has {names}",
        )
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return found  # type: ignore[no-any-return]


def returned_type(statement: CreateFunction, function: Callable[..., Any]) -> str:
    """Return Spark's name of a function's return type, from its annotation."""
    try:
        hint = get_type_hints(function).get("return")
    except (NameError, TypeError):
        hint = None
    if hint not in TYPES:
        raise StatementError(
            statement.line,
            f"{statement.function} does not declare its return type; type: CREATE FUNCTION "
            f"{statement.name} FROM '{statement.module}' RETURNS DOUBLE",
        )
    return TYPES[hint]
