"""The severities of findings."""

from enum import StrEnum


class Severity(StrEnum):
    """How urgently an operator should act."""

    INFO = "info"
    """Money or speed is lost; nothing is broken."""
    WARNING = "warning"
    """A job or a card suffers: look at it today."""
    CRITICAL = "critical"
    """A card is lost or will be: act now."""

    @property
    def rank(self) -> int:
        """Return its rank, from the mildest, for comparisons."""
        return list(Severity).index(self)
