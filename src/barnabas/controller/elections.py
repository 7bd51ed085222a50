"""Elects partition leaders when brokers start or stop, and on request (ElectLeaders, key 43)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from barnabas.controller.partition_change import (
    IsLive,
    in_order,
    lead_uncleanly,
    records_of,
    settle,
)
from barnabas.controller.topic_rules import TopicRules, rules_of
from barnabas.metadata.image import NO_LEADER, Image, PartitionImage, TopicImage
from barnabas.metadata.metadata_records import PartitionChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED = 0
UNCLEAN = 1


def _has_everything(_: TopicRules) -> bool:
    return True


def broker_lost(
    image: Image,
    node_id: int,
    defaults: Mapping[str, str],
    *,
    has_all_acknowledged: Callable[[TopicRules], bool] = _has_everything,
    lost_its_disk: bool = False,
) -> list[PartitionChanged]:
    """Return the partition changes when a broker is fenced, stops, or restarts.

    It leaves every ISR that has other members, and leads nothing. `has_all_acknowledged` says for a
    topic's rules whether the broker has all records that it acknowledged under them. A broker that
    lost its disk has none, and must not be elected before replicas that may have some.
    """

    def is_live(other: int) -> bool:
        return other != node_id and image.is_active(other)

    records: list[PartitionChanged] = []
    for topic in image.topics.values():
        concerned = [
            (number, partition)
            for number, partition in enumerate(topic.partitions)
            if node_id == partition.leader
            or node_id in partition.isr
            or node_id in partition.eligible
        ]
        if not concerned:
            continue
        rules = rules_of(topic, defaults)
        trusted = has_all_acknowledged(rules)
        for number, before in concerned:
            wanted = (
                leave_isr(before, node_id) if trusted else drop_untrusted(before, node_id, is_live)
            )
            if lost_its_disk:
                wanted = mark_disk_lost(wanted, node_id)
            untrusted = () if trusted else (node_id,)
            after = settle(before, wanted, rules, is_live, untrusted=untrusted)
            records += records_of(topic, number, before, after)
    return records


def leave_isr(before: PartitionImage, node_id: int) -> PartitionImage:
    """Remove a broker from the ISR, unless it is the last member."""
    stay = [n for n in before.isr if n != node_id]
    return replace(before, isr=stay or before.isr)


def drop_untrusted(before: PartitionImage, node_id: int, is_live: IsLive) -> PartitionImage:
    """Remove a broker that may have lost records from the ISR and from the eligible replicas.

    If it was the last member of the ISR, an eligible replica takes its place. If there is none, the
    broker stays, because no other replica is known to have more.
    """
    eligible = [n for n in before.eligible if n != node_id]
    stay = [n for n in before.isr if n != node_id]
    if not stay and eligible:
        ordered = in_order(before.replicas, eligible)
        stay = [next((n for n in ordered if is_live(n)), ordered[0])]
    isr = stay or before.isr
    return replace(before, isr=isr, eligible=[n for n in eligible if n not in isr])


def mark_disk_lost(before: PartitionImage, node_id: int) -> PartitionImage:
    """Mark the last member of the ISR as one that lost its disk, if there are other replicas.

    The partition then has no leader until the operator requests an unclean election, unless the
    topic allows unclean elections.
    """
    if before.isr != [node_id] or len(before.replicas) == 1:
        return before
    return replace(before, wiped=[node_id])


def broker_unfenced(
    image: Image, node_id: int, defaults: Mapping[str, str]
) -> list[PartitionChanged]:
    """Return the changes when a broker is unfenced: it may lead partitions without a leader."""

    def is_live(other: int) -> bool:
        return other == node_id or image.is_active(other)

    return _settle_each(
        image,
        defaults,
        is_live,
        lambda partition: partition.leader == NO_LEADER and node_id in partition.replicas,
        image.topics,
    )


def configs_changed(
    image: Image, names: Iterable[str], defaults: Mapping[str, str]
) -> list[PartitionChanged]:
    """Return the partition changes that follow from changed topic configs.

    The image already has the new configs. A smaller `min.insync.replicas` can end the eligibility
    of replicas. A leader must not apply one change without the other, so these records belong into
    the batch that changes the configs.
    """
    return _settle_each(image, defaults, image.is_active, lambda _: True, names)


def prefer_first_replicas(
    image: Image, defaults: Mapping[str, str], limit: int = 1000
) -> list[PartitionChanged]:
    """Return the records that move leadership back to the preferred leaders."""
    records: list[PartitionChanged] = []
    for topic in image.topics.values():
        rules = rules_of(topic, defaults)
        for number, before in enumerate(topic.partitions):
            if len(records) == limit:
                return records
            if before.leader != before.replicas[0] and _may_be_preferred(image, before):
                records += _prefer(image, topic, number, rules)
    return records


class Elected(NamedTuple):
    """The outcome of an ElectLeaders request."""

    records: list[PartitionChanged]
    response: ElectLeadersResponse


def elect_leaders(
    image: Image, request: ElectLeadersRequest, defaults: Mapping[str, str]
) -> Elected:
    """Run the requested elections; without a list, in every partition.

    As in Kafka, the answer without a list names every topic, and of its partitions those in which
    an election ran or failed.
    """
    if request.election_type not in {PREFERRED, UNCLEAN}:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"election type {request.election_type} is neither preferred (0) nor unclean (1)",
        )
    elect = _elect_preferred if request.election_type == PREFERRED else _elect_uncleanly
    records: list[PartitionChanged] = []
    results: dict[str, list[PartitionResult]] = {}
    if request.topic_partitions is None:
        results = {name: [] for name in image.topics}
    for name, number in _asked_for(image, request):
        result = PartitionResult(partition_id=number, error_message=None)
        try:
            records += elect(image, *_find(image, name, number), defaults)
        except ApiError as error:
            unneeded = error.code is ErrorCode.ELECTION_NOT_NEEDED
            if unneeded and request.topic_partitions is None:
                continue
            result.error_code, result.error_message = error.code, error.message
        results.setdefault(name, []).append(result)
    answers = [
        ReplicaElectionResult(topic=name, partition_result=found) for name, found in results.items()
    ]
    return Elected(records, ElectLeadersResponse(replica_election_results=answers))


def _asked_for(image: Image, request: ElectLeadersRequest) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is None:
        for topic in image.topics.values():
            yield from ((topic.name, number) for number in range(len(topic.partitions)))
        return
    # Each partition once: a second election would not see the result of the first.
    named = ((t.topic, number) for t in request.topic_partitions for number in t.partitions)
    yield from dict.fromkeys(named)


def _find(image: Image, name: str, number: int) -> tuple[TopicImage, int]:
    topic = image.topics.get(name)
    if topic is None or not 0 <= number < len(topic.partitions):
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {number} of {name!r}"
        )
    return topic, number


def _elect_preferred(
    image: Image, topic: TopicImage, number: int, defaults: Mapping[str, str]
) -> list[PartitionChanged]:
    before = topic.partitions[number]
    if before.leader == before.replicas[0]:
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, "the preferred replica is already the leader")
    if not _may_be_preferred(image, before):
        raise ApiError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"broker {before.replicas[0]}, the preferred leader, is not live and in sync",
        )
    return _prefer(image, topic, number, rules_of(topic, defaults))


def _elect_uncleanly(
    image: Image, topic: TopicImage, number: int, defaults: Mapping[str, str]
) -> list[PartitionChanged]:
    before, rules = topic.partitions[number], rules_of(topic, defaults)
    if before.leader != NO_LEADER:
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, f"broker {before.leader} leads")
    after = settle(before, before, rules, image.is_active)
    if after.leader == NO_LEADER:
        live = [n for n in before.replicas if image.is_active(n)]
        if not live:
            raise ApiError(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"none of the replicas {before.replicas} is live",
            )
        after = settle(before, lead_uncleanly(before, live), rules, image.is_active)
    return records_of(topic, number, before, after)


def _may_be_preferred(image: Image, partition: PartitionImage) -> bool:
    preferred = partition.replicas[0]
    return preferred in partition.isr and image.is_active(preferred)


def _prefer(
    image: Image, topic: TopicImage, number: int, rules: TopicRules
) -> list[PartitionChanged]:
    before = topic.partitions[number]
    wanted = replace(before, leader=before.replicas[0])
    return records_of(topic, number, before, settle(before, wanted, rules, image.is_active))


def _settle_each(
    image: Image,
    defaults: Mapping[str, str],
    is_live: IsLive,
    concerned: Callable[[PartitionImage], bool],
    names: Iterable[str],
) -> list[PartitionChanged]:
    records: list[PartitionChanged] = []
    for topic in (image.topics[name] for name in names):
        found = [(n, p) for n, p in enumerate(topic.partitions) if concerned(p)]
        rules = rules_of(topic, defaults) if found else None
        for number, before in found:
            assert rules is not None
            after = settle(before, before, rules, is_live)
            records += records_of(topic, number, before, after)
    return records
