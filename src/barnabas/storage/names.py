"""The names of a log's files: an offset in twenty digits, and a suffix."""

import re

from barnabas.model.ports import Disk

DIGITS = 20
OFFSET_MAX = (1 << 63) - 1
LOG_SUFFIX = ".log"
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")

# Not `str.isdecimal`, which takes the digits of every script, as `int` does.
_STEM = re.compile(f"[0-9]{{{DIGITS}}}")


def segment_name(base_offset: int) -> str:
    """Return the stem of a segment's files."""
    return f"{base_offset:0{DIGITS}d}"


def offset_in(stem: str) -> int | None:
    """Return the offset in a stem; None if the stem is not the name of an offset."""
    if not _STEM.fullmatch(stem):
        return None
    offset = int(stem)
    return offset if offset <= OFFSET_MAX else None


def numbered(disk: Disk, folder: str, suffix: str) -> list[int]:
    """Return the offsets of the files with a suffix, ascending; ignore other names."""
    stems = [name.removesuffix(suffix) for name in disk.files(folder) if name.endswith(suffix)]
    found = (offset_in(stem) for stem in stems)
    return sorted(offset for offset in found if offset is not None)
