"""Where a group begins that has no state yet, as its config says."""

from typing import NamedTuple


class OffsetReset(NamedTuple):
    """A value of `share.auto.offset.reset`."""

    is_latest: bool = True
    """Whether the group begins with the next record that is produced."""
    age_ms: int | None = None
    """How old the first record may be; None for any age."""


LATEST = OffsetReset()
EARLIEST = OffsetReset(is_latest=False)
