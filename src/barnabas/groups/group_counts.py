"""What the groups of a broker did since its start, for metrics.

One object belongs to all coordinators of the broker, since coordinators come and go with their
partitions.
"""


class GroupCounts:
    """Plain numbers."""

    __slots__ = ("offset_commits", "rebalances")

    def __init__(self) -> None:
        self.offset_commits = 0
        """Offsets in commits that arrived."""
        self.rebalances = 0
        """New generations of classic groups, and new epochs of consumer groups."""
