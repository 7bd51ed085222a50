"""Finds the complete versions of a `ChangelogTable` on disk and chooses the folder of the next one.

    version-0000000007/part-...           rows, written by a session with its own JVM
    remote-0000000008/part-...            rows, written over Spark Connect
    .../_SUCCESS                          Spark's mark that all rows are there
    .../_whole/sequence=12/part-...       our mark, with the version of the table

Spark's readers do not show `_SUCCESS`, and a Spark Connect session has no other access to files.
They do read a folder that begins with an underscore if it is named, so a second mark is put there.
A session with a JVM asks Hadoop's file system, which is faster, can delete, and recognises folders
of older releases that have only the first mark.

A Spark Connect session cannot delete a folder, so it overwrites the oldest one. The number in the
folder's name is then no longer the version, which is in `sequence`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSIONS_KEPT = 3
WHOLE = "_whole"
MARKED = re.compile(r"((?:version|remote)-\d{10})/_whole/sequence=(\d+)")
UNMARKED = re.compile(r"version-(\d{10})/_SUCCESS$")
NOT_FOUND = "PATH_NOT_FOUND"


class Version(NamedTuple):
    """A version of the table, and its folder within that of the table."""

    sequence: int
    name: str


class Versions(ABC):
    """The versions of one table, for one kind of session."""

    def __init__(self, spark: "SparkSession", folder: str) -> None:
        self._spark = spark
        self._folder = folder

    def path(self, version: Version) -> str:
        """Return the path of the rows of a version."""
        return f"{self._folder}/{version.name}"

    @abstractmethod
    def whole(self) -> list[Version]:
        """Return the complete versions, oldest first."""

    @abstractmethod
    def next(self, whole: Sequence[Version]) -> Version:
        """Return the version after these, and the folder that it may overwrite."""

    @abstractmethod
    def mark(self, version: Version) -> None:
        """Mark a version as complete."""

    @abstractmethod
    def forget(self, whole: Sequence[Version]) -> None:
        """Delete old versions, if this kind of session can."""


class HadoopVersions(Versions):
    """The versions in a session with its own JVM."""

    def whole(self) -> list[Version]:
        """Return the marked versions, and those of older releases."""
        found = {name: int(number) for name, number in self._matches("version-*/_SUCCESS")}
        found |= {name: int(number) for name, number in self._matches(f"*-*/{WHOLE}/sequence=*")}
        return sorted(Version(sequence, name) for name, sequence in found.items())

    def next(self, whole: Sequence[Version]) -> Version:
        """Return a new folder."""
        sequence = whole[-1].sequence + 1 if whole else 0
        return Version(sequence, f"version-{sequence:010d}")

    def mark(self, version: Version) -> None:
        """Write the mark that Spark Connect sessions look for."""
        system, path = self._hadoop(f"{version.name}/{WHOLE}/sequence={version.sequence}/mark")
        stream = system.create(path, True)
        stream.writeBytes(f"{version.sequence}\n")
        stream.close()

    def forget(self, whole: Sequence[Version]) -> None:
        """Delete all except the last versions."""
        for version in whole[:-VERSIONS_KEPT]:
            system, path = self._hadoop(version.name)
            system.delete(path, True)

    def _matches(self, pattern: str) -> list[tuple[str, str]]:
        system, path = self._hadoop(pattern)
        found = (str(each.getPath().toString()) for each in system.globStatus(path) or [])
        marked = (MARKED.search(each) or UNMARKED.search(each) for each in found)
        return [
            (each[1], each[2]) if each.re is MARKED else _of_older_release(each)
            for each in marked
            if each
        ]

    def _hadoop(self, name: str) -> tuple[Any, Any]:
        """Return Hadoop's file system for a path within the table, and Hadoop's path object."""
        context: Any = self._spark.sparkContext
        there = context._jvm.org.apache.hadoop.fs.Path(f"{self._folder}/{name}")
        return there.getFileSystem(context._jsc.hadoopConfiguration()), there


class RemoteVersions(Versions):
    """The versions in a Spark Connect session, which has only Spark's readers and writers."""

    def whole(self) -> list[Version]:
        """Return the marked versions; refuse a table of an older release, which has no marks."""
        # A writer may overwrite the oldest version, and its mark, while the marks are read.
        reader = self._spark.read.option("ignoreMissingFiles", "true")
        marks = reader.text(f"{self._folder}/*-*/{WHOLE}/sequence=*")
        rows = _rows(marks.selectExpr("_metadata.file_path AS path").distinct())
        found = (MARKED.search(row.path) for row in rows)
        whole = sorted(Version(int(each[2]), each[1]) for each in found if each)
        if not whole and self._has_unmarked():
            raise RuntimeError(
                f"The table in {self._folder} was written by an older release of Barnabas, and "
                "Spark Connect cannot see which of its versions is whole; apply one batch to it "
                "in a session without Spark Connect first"
            )
        return whole

    def next(self, whole: Sequence[Version]) -> Version:
        """Return a new folder, or the oldest one if there are enough."""
        sequence = whole[-1].sequence + 1 if whole else 0
        is_full = len(whole) > VERSIONS_KEPT
        return Version(sequence, whole[0].name if is_full else f"remote-{sequence:010d}")

    def mark(self, version: Version) -> None:
        """Write the mark."""
        row = self._spark.createDataFrame([(str(version.sequence),)], "value STRING")
        place = f"{self.path(version)}/{WHOLE}/sequence={version.sequence}"
        row.coalesce(1).write.mode("overwrite").text(place)

    def forget(self, whole: Sequence[Version]) -> None:
        """Leave old folders for `next`; there is no way to delete them."""

    def _has_unmarked(self) -> bool:
        files = self._spark.read.format("binaryFile").load(f"{self._folder}/version-*")
        return bool(_rows(files.select("path").limit(1)))


def versions_of(spark: "SparkSession", folder: str) -> Versions:
    """Return the versions of a table for this kind of session."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return RemoteVersions(spark, folder)
    return HadoopVersions(spark, folder)


def _of_older_release(match: re.Match[str]) -> tuple[str, str]:
    return f"version-{match[1]}", match[1]


def _rows(frame: "DataFrame") -> list[Any]:
    """Return rows of files; none if there are no such files."""
    try:
        return frame.collect()
    except AnalysisException as error:
        if error.getCondition() != NOT_FOUND:
            raise
        return []
