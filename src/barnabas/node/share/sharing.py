"""What a broker has of share groups: the windows of its partitions, and the sessions of members."""

from collections.abc import Callable

from barnabas.model.pending import Pending
from barnabas.model.share_state import ShareStates
from barnabas.model.timers import Timers
from barnabas.node.partitions.partition import Partition
from barnabas.node.share.dead_letter_topics import DeadLetterTopics
from barnabas.node.share.share_partition import ShareRules
from barnabas.node.share.share_partitions import Find, SharePartitions
from barnabas.node.share.share_sessions import ShareSessions


class Sharing:
    """Share groups on one broker."""

    def __init__(
        self,
        find: Find,
        states: ShareStates,
        timers: Timers,
        rules: Callable[[str], ShareRules],
        first_offset: Callable[[str, Partition], Pending[int]],
        sessions_max: int,
        dead_letters: DeadLetterTopics | None = None,
    ) -> None:
        self.rules = rules
        """Returns the configs of a group."""
        self.partitions = SharePartitions(find, states, timers, rules, first_offset, dead_letters)
        self.sessions = ShareSessions(
            sessions_max, self.partitions.release, self.partitions.forget_when_idle
        )
