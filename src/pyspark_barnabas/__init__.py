"""Registers `format("barnabas")` with PySpark, which imports this package because of its name.

PySpark looks for modules called `pyspark_*` on the path and registers their `DefaultSource`. One
that cannot be imported would spoil the search for all others, so without the extra there is none.
"""

import contextlib

with contextlib.suppress(ModuleNotFoundError):
    from barnabas.spark.data_source import BarnabasDataSource as DefaultSource  # noqa: F401
