"""Decides when committed positions expire (KIP-211).

Positions are kept while the group has members. The retention time of a classic group starts when
the last member leaves; that of any other position, when it was committed. While there are members,
the positions of topics that none of them reads expire as well, if the coordinator knows the topics
that they read.
"""

from collections.abc import Iterator

from barnabas.groups.directory import Directory, Group, GroupType
from barnabas.groups.offset_records import tombstone
from barnabas.groups.offset_store import Committed, OffsetStore, Place
from barnabas.model.coordination import CoordinatorRecord


def tombstones_due(
    groups: Directory, store: OffsetStore, now_ms: int, retention_ms: int
) -> Iterator[CoordinatorRecord]:
    """Yield tombstones of expired positions, and of empty groups without positions."""
    for group in groups.values():
        if group.type is GroupType.SHARE:
            continue  # it has no positions, and stays until it is deleted
        left = store.has_waiting(group.group_id)
        for place, committed in _positions(store, group.group_id):
            if _is_due(group, place, committed, now_ms - retention_ms, now_ms) and not (
                store.is_waiting(place)
            ):
                yield tombstone(place)
            else:
                left = True
        if group.is_empty and not left:
            yield from group.tombstones()


def _positions(store: OffsetStore, group_id: str) -> Iterator[tuple[Place, Committed]]:
    for topic, partitions in store.of_group(group_id).items():
        for partition, committed in partitions.items():
            yield Place(group_id, topic, partition), committed


def _is_due(group: Group, place: Place, committed: Committed, oldest_ms: int, now_ms: int) -> bool:
    since_ms = _kept_since_ms(group, committed)
    if since_ms is None or group.subscribes_to(place.topic):
        return False
    if committed.expire_timestamp != -1:
        return now_ms >= committed.expire_timestamp
    return since_ms <= oldest_ms


def _kept_since_ms(group: Group, committed: Committed) -> int | None:
    """Return when the retention time of a position starts; None while it must stay."""
    if group.type is GroupType.CONSUMER or not group.protocol_type:
        return committed.commit_timestamp
    if group.is_empty:
        since_ms = group.empty_since_ms
        return committed.commit_timestamp if since_ms is None else since_ms
    if group.protocol_type == "consumer" and group.state == "Stable":
        return committed.commit_timestamp
    return None
