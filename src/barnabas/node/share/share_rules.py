"""The configs of a share group, as its share partitions apply them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.metadata.share_group_config import LATEST, OffsetReset, resolve
from barnabas.model.dead_letter_rules import DeadLetterRules
from barnabas.model.settings import ShareSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """What applies to one group; see `ShareRules`."""

    lock_duration_ms: int
    deliveries_max: int
    locks_max: int
    reads_committed: bool = False
    can_renew: bool = True
    backoff_ms: int = 0
    backoff_max_ms: int = 0
    reset: OffsetReset = LATEST
    dead_letters: DeadLetterRules | None = None
    """Where records go that are not delivered again; None if they are only archived."""


class RulesOfGroups:
    """The rules of all groups; they are worked out anew when the configs of a group change."""

    def __init__(
        self, configs: Callable[[], Mapping[str, Mapping[str, str]]], settings: ShareSettings
    ) -> None:
        self._configs = configs
        self._settings = settings
        self._default = _rules({}, settings)
        self._known: dict[str, tuple[dict[str, str], GroupRules]] = {}

    def of(self, group_id: str) -> GroupRules:
        """Return the rules of a group."""
        configs = self._configs().get(group_id)
        if not configs:
            self._known.pop(group_id, None)
            return self._default
        known = self._known.get(group_id)
        if known is None or known[0] != configs:
            known = self._known[group_id] = dict(configs), _rules(configs, self._settings)
        return known[1]


def _rules(configs: Mapping[str, str], settings: ShareSettings) -> GroupRules:
    config = resolve(configs, settings)
    return GroupRules(
        lock_duration_ms=config.record_lock_duration_ms,
        deliveries_max=config.delivery_count_limit,
        locks_max=config.partition_max_record_locks,
        reads_committed=config.read_committed,
        can_renew=config.renew_enabled,
        backoff_ms=config.retry_backoff_ms,
        backoff_max_ms=config.retry_backoff_max_ms,
        reset=config.offset_reset,
        dead_letters=config.dead_letters,
    )
