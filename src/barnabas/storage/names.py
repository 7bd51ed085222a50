"""How the files of a log are called: an offset in twenty digits, and a suffix."""

from barnabas.model.ports import Disk

DIGITS = 20
LOG_SUFFIX = ".log"
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")


def segment_name(base_offset: int) -> str:
    """Return the stem of a segment's files."""
    return f"{base_offset:0{DIGITS}d}"


def numbered(disk: Disk, folder: str, suffix: str) -> list[int]:
    """Return the offsets of the files with a suffix, ascending; other files are none of ours."""
    stems = [name.removesuffix(suffix) for name in disk.list(folder) if name.endswith(suffix)]
    return sorted(int(stem) for stem in stems if len(stem) == DIGITS and stem.isdecimal())
