"""From what somebody wants of a partition to what becomes of it.

Brokers come and go, leaders report who is in sync, operators move replicas. Each says what it
wants changed (`wanted`), and `settle` draws the consequences, always the same ones in the same
order:

    1. a reassignment that has everybody it waited for is completed
    2. where nobody leads who may, a leader is elected: from the ISR, else from those who left it
       but have everything that was acknowledged, else, only where the topic allows it, anyone
    3. who left the ISR while too few stayed is remembered as eligible (KIP-966)
    4. the epochs rise

Two facts hold before and after. The ISR is never empty: the last one stays in it, without
leading, because it is the one who has everything. And whoever is in the ISR is live, but for that
last one.

Why an eligible replica has everything: the high watermark moves only while enough replicas are in
sync, and it counts all who are. One that leaves a set which thereby becomes too small has all that
was acknowledged till then, and after that nothing more is, until the set has grown again; then
nobody is eligible any longer. For the same reason a change of `min.insync.replicas` must settle
the partitions of the topic in the same batch of records (`elections.configs_changed`).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from barnabas.controller.topic_rules import TopicRules
from barnabas.metadata.image import NO_LEADER, PartitionImage, TopicImage, changed
from barnabas.metadata.records import PartitionChanged

IsLive = Callable[[int], bool]


def settle(
    before: PartitionImage,
    wanted: PartitionImage,
    rules: TopicRules,
    is_live: IsLive,
    *,
    untrusted: Collection[int] = (),
) -> PartitionImage:
    """Return the partition as it will be; `before` itself where nothing changes.

    What is wanted still has the epochs of before. Who is untrusted may have lost what it
    acknowledged, and is not eligible.
    """
    after = with_leader(completed(wanted, rules), rules, is_live)
    candidates = [n for n in (*before.isr, *wanted.eligible) if n not in untrusted]
    eligible = eligible_leaders(after, candidates, rules, before=before)
    if eligible != after.eligible:
        after = replace(after, eligible=eligible)
    if after.wiped and after.leader != NO_LEADER:
        after = replace(after, wiped=[])  # whoever leads now has more
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
    """Return the record that makes the change, where there is one."""
    return [] if after is before else [changed(topic.topic_id, number, after)]


def in_order(replicas: Iterable[int], members: Collection[int]) -> list[int]:
    """Return members in the order in which they are replicas."""
    return [replica for replica in replicas if replica in members]


def completed(wanted: PartitionImage, rules: TopicRules) -> PartitionImage:
    """Finish a reassignment whose new replicas are all in sync.

    It also waits until enough of those who stay are: replicas that have everything are not
    given up for some that have not.
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
    return finished if arrived and finished.isr and rules.enough(finished) else wanted


def with_leader(wanted: PartitionImage, rules: TopicRules, is_live: IsLive) -> PartitionImage:
    """Keep the leader that is wanted if it may lead, else elect one."""
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
    """Let one lead who may lack what was acknowledged; from now on its log is the truth.

    Who is only being added, or lost its disk, has least.
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
    """Return who is not in sync but has everything that was acknowledged (KIP-966)."""
    elected_uncleanly = after.unclean and after.leader != before.leader
    if rules.enough(after) or elected_uncleanly:
        return []
    return [n for n in in_order(after.replicas, candidates) if n not in after.isr]


def enters_leader_epoch(before: PartitionImage, after: PartitionImage) -> bool:
    """Whether a new leader epoch begins: with every leader, and where replicas were dropped.

    A dropped replica that has not heard of it yet goes on to fetch, in an epoch that is over.
    """
    dropped = any(replica not in after.replicas for replica in before.replicas)
    return after.leader != before.leader or dropped
