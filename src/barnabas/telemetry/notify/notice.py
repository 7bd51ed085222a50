"""Parses a record of topic gpu-alerts into an alert with its partition and offset."""

import json
from typing import Any, NamedTuple

CLEARED = "cleared"
TEXTS = ("alert_id", "state", "finding", "severity", "gpu_id", "first_seen", "last_seen")
"""The columns that every alert has."""


class UnreadableError(ValueError):
    """A record that is not an alert."""


class Place(NamedTuple):
    """The partition and the offset of a record."""

    partition: int
    offset: int


class Notice(NamedTuple):
    """An alert to be sent."""

    columns: dict[str, Any]
    """The columns of the table `alerts`, as the record has them."""
    place: Place | None
    """None for an alert that the forwarder itself created."""

    @property
    def alert_id(self) -> str:
        """The id, which is the same from raised to cleared."""
        return str(self.columns["alert_id"])

    @property
    def is_cleared(self) -> bool:
        """Whether the alert is over."""
        return bool(self.columns["state"] == CLEARED)

    @property
    def gpus(self) -> tuple[str, ...]:
        """All cards of the alert."""
        return tuple(self.columns.get("gpus") or (self.columns["gpu_id"],))

    def text(self, name: str) -> str:
        """Return a column as text, empty if it is null."""
        value = self.columns.get(name)
        return "" if value is None else str(value)

    def cleared(self) -> "Notice":
        """Return the cleared state of this alert, for which there is no record."""
        return Notice({**self.columns, "state": CLEARED}, None)


def parse(value: bytes | None, place: Place) -> Notice:
    """Parse a record; raise if it is not an alert."""
    try:
        columns = json.loads(value or b"")
    except ValueError as error:
        raise UnreadableError(f"it is not JSON ({error})") from error
    if not isinstance(columns, dict):
        raise UnreadableError("it is not a JSON object")
    lacking = [name for name in TEXTS if not isinstance(columns.get(name), str)]
    if lacking:
        raise UnreadableError(f"it has no text for {', '.join(lacking)}")
    return Notice(columns, place)
