"""Computes the new state of a partition from a requested change.

Brokers start and stop, leaders report their in-sync replicas, and operators move replicas. Each
event requests a change (`wanted`), and `settle` computes the consequences in a fixed order:

    1. a reassignment whose new replicas are all in sync is completed
    2. if the leader is missing or may not lead, a leader is elected: from the ISR, else from the
       eligible replicas, else, only if the topic allows it, from all live replicas
    3. a replica that left the ISR while too few members stayed becomes eligible (KIP-966)
    4. the epochs rise

Two invariants hold before and after. The ISR is never empty: its last member stays in it without
leading, because it has all acknowledged records. And every other member of the ISR is live.

An eligible replica has all acknowledged records, for this reason: the high watermark advances only
while enough replicas are in sync, and only past records that all of them have. A replica whose
leaving makes the ISR too small has everything acknowledged so far. Nothing more is acknowledged
until the ISR has grown again, and then no replica is eligible any more. For the same reason a
change of `min.insync.replicas` must settle the partitions of the topic in the same batch of records
(`elections.configs_changed`).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from barnabas.controller.topic_rules import TopicRules
from barnabas.metadata.image import NO_LEADER, PartitionImage, TopicImage, changed
from barnabas.metadata.metadata_records import PartitionChanged

IsLive = Callable[[int], bool]


def settle(
    before: PartitionImage,
    wanted: PartitionImage,
    rules: TopicRules,
    is_live: IsLive,
    *,
    untrusted: Collection[int] = (),
) -> PartitionImage:
    """Return the new state of a partition; `before` itself if nothing changes.

    `wanted` still has the epochs of `before`. An untrusted replica may have lost acknowledged
    records, and is not eligible.
    """
    after = with_leader(completed(wanted, rules), rules, is_live)
    candidates = [n for n in (*before.isr, *wanted.eligible) if n not in untrusted]
    eligible = eligible_leaders(after, candidates, rules, before=before)
    if eligible != after.eligible:
        after = replace(after, eligible=eligible)
    if after.wiped and after.leader != NO_LEADER:
        after = replace(after, wiped=[])  # the new leader has more records
    if after == before:
        return before
    return replace(
        after,
        leader_epoch=before.leader_epoch + enters_leader_epoch(before, after),
        partition_epoch=before.partition_epoch + 1,
    )


def records_of(
    topic: TopicImage, number: int, before: PartitionImage, after: PartitionImage
) -> list[PartitionChanged]:
    """Return the record of the change, if there is a change."""
    return [] if after is before else [changed(topic.topic_id, number, after)]


def in_order(replicas: Iterable[int], members: Collection[int]) -> list[int]:
    """Return members in the order in which they are replicas."""
    return [replica for replica in replicas if replica in members]


def completed(wanted: PartitionImage, rules: TopicRules) -> PartitionImage:
    """Finish a reassignment whose new replicas are all in sync.

    It also waits until enough of the remaining replicas are in sync, because dropping the others
    must not lose acknowledged records.
    """
    if not (wanted.adding or wanted.removing):
        return wanted
    finished = replace(
        wanted,
        replicas=[n for n in wanted.replicas if n not in wanted.removing],
        isr=[n for n in wanted.isr if n not in wanted.removing],
        adding=[],
        removing=[],
    )
    arrived = all(n in wanted.isr for n in wanted.adding)
    return finished if arrived and finished.isr and rules.has_enough_in_sync(finished) else wanted


def with_leader(wanted: PartitionImage, rules: TopicRules, is_live: IsLive) -> PartitionImage:
    """Keep the wanted leader if it may lead, else elect one."""
    live = [n for n in wanted.replicas if is_live(n)]
    in_sync = [n for n in live if n in wanted.isr and n not in wanted.wiped]
    if wanted.leader in in_sync:
        return wanted
    if in_sync:
        return replace(wanted, leader=in_sync[0])
    eligible = [n for n in live if n in wanted.eligible]
    if eligible:
        return replace(wanted, leader=eligible[0], isr=eligible[:1])
    if live and rules.unclean_election:
        return lead_uncleanly(wanted, live)
    return replace(wanted, leader=NO_LEADER)


def lead_uncleanly(wanted: PartitionImage, live: Sequence[int]) -> PartitionImage:
    """Elect a leader that may lack acknowledged records; its log becomes authoritative.

    Replicas that are being added or lost their disk come last, because they have the least.
    """
    least = {*wanted.adding, *wanted.wiped}
    leader = next((n for n in live if n not in least), live[0])
    return replace(wanted, leader=leader, isr=[leader], unclean=True)


def eligible_leaders(
    after: PartitionImage,
    candidates: Collection[int],
    rules: TopicRules,
    *,
    before: PartitionImage,
) -> list[int]:
    """Return the out-of-sync replicas that have all acknowledged records (KIP-966)."""
    elected_uncleanly = after.unclean and after.leader != before.leader
    if rules.has_enough_in_sync(after) or elected_uncleanly:
        return []
    return [n for n in in_order(after.replicas, candidates) if n not in after.isr]


def enters_leader_epoch(before: PartitionImage, after: PartitionImage) -> bool:
    """Whether a new leader epoch begins: with a new leader, and when replicas are dropped.

    A dropped replica that has not applied the change yet then fetches in an outdated epoch.
    """
    dropped = any(replica not in after.replicas for replica in before.replicas)
    return after.leader != before.leader or dropped
