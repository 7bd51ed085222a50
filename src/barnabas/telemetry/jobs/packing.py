"""Packs the package into one zip file for workers on which Barnabas is not installed.

Python imports from zip files, so a worker needs nothing else of Barnabas. The packages that
Barnabas imports cannot be sent in this way, as many of them are compiled: `REQUIREMENTS` must be
installed in the Python of the workers.
"""

import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

ARCHIVE = "barnabas_package.zip"
"""Different from usual names of users' files: Spark refuses two files of the same name."""
SUBMIT = "barnabas_submit.py"
PACKAGES = ("barnabas", "pyspark_barnabas")
LEFT_OUT = {"__pycache__"}

REQUIREMENTS = {
    "numpy": "numpy",
    "pyarrow": "pyarrow>=19",
    "pandas": "pandas>=2.2,<3",
    "orjson": "orjson>=3.10",
    "confluent_kafka": "confluent-kafka>=2.6",
    "cramjam": "cramjam>=2.9",
    "crc32c": "crc32c>=2.7",
    "lz4": "lz4>=4.3",
}
"""The packages that workers import, with their names for pip."""

SUBMIT_TEXT = '''"""What spark-submit starts: `barnabas telemetry run` with the same options."""

from barnabas.cli.submit import main

main()
'''


def own_archive() -> Path | None:
    """Return the zip from which this package runs; spark-submit has sent it to the workers."""
    found = files("barnabas")
    return None if isinstance(found, Path) else Path(str(found)).parent


def write(target: Path) -> int:
    """Write the zip; return the number of its files."""
    count = 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for name, content in _content(files(package), package):
                archive.writestr(name, content)
                count += 1
    return count


def _content(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = f"{prefix}/{each.name}"
        if each.name in LEFT_OUT:
            continue
        if each.is_dir():
            yield from _content(each, name)
        else:
            yield name, each.read_bytes()
