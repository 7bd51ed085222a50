"""The configs of a share group, as its share partitions apply them."""

from dataclasses import dataclass

from barnabas.model.settings import ShareSettings
from barnabas.share.dead_letter_rules import DeadLetterRules
from barnabas.share.offset_reset import LATEST, OffsetReset


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """What applies to one group; see `ShareRules`."""

    lock_duration_ms: int
    deliveries_max: int
    locks_max: int
    reads_committed: bool = False
    can_renew: bool = True
    reset: OffsetReset = LATEST
    dead_letters: DeadLetterRules | None = None
    """Where records go that are not delivered again; None if they are only archived."""


def rules_from(settings: ShareSettings) -> GroupRules:
    """Return the rules of groups without configs of their own."""
    return GroupRules(
        lock_duration_ms=settings.record_lock_duration_ms,
        deliveries_max=settings.delivery_count_limit,
        locks_max=settings.partition_max_record_locks,
    )
