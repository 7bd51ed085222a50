"""Who leads, as brokers come and go, and when an operator asks (ElectLeaders, key 43)."""

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
from barnabas.metadata.records import PartitionChanged
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
    keeps_its_word: Callable[[TopicRules], bool] = _has_everything,
    lost_its_disk: bool = False,
) -> list[PartitionChanged]:
    """Return what becomes of partitions when a broker is fenced, stops, or starts anew.

    It leaves every ISR in which others are, and leads nothing. `keeps_its_word` says of a topic's
    rules whether the broker surely has what it acknowledged under them. One that lost its disk
    surely has nothing, and must not be elected before those who may have something.
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
        trusted = keeps_its_word(rules)
        for number, before in concerned:
            wanted = leave(before, node_id) if trusted else leave_for_good(before, node_id, is_live)
            if lost_its_disk:
                wanted = wipe(wanted, node_id)
            untrusted = () if trusted else (node_id,)
            after = settle(before, wanted, rules, is_live, untrusted=untrusted)
            records += records_of(topic, number, before, after)
    return records


def leave(before: PartitionImage, node_id: int) -> PartitionImage:
    """Take a broker out of the ISR, unless it is the last in it."""
    stay = [n for n in before.isr if n != node_id]
    return replace(before, isr=stay or before.isr)


def leave_for_good(before: PartitionImage, node_id: int, is_live: IsLive) -> PartitionImage:
    """Take a broker that may have lost records out of ISR and eligible set.

    Where it was the last in sync, one who is eligible takes its place. Where there is none either
    it stays: nobody is known to have more.
    """
    eligible = [n for n in before.eligible if n != node_id]
    stay = [n for n in before.isr if n != node_id]
    if not stay and eligible:
        ordered = in_order(before.replicas, eligible)
        stay = [next((n for n in ordered if is_live(n)), ordered[0])]
    isr = stay or before.isr
    return replace(before, isr=isr, eligible=[n for n in eligible if n not in isr])


def wipe(before: PartitionImage, node_id: int) -> PartitionImage:
    """Mark the last one in the ISR as one that lost its disk, where others have a copy at all.

    Nobody leads then unless the operator has one of them elected uncleanly, or the topic allows it.
    """
    if before.isr != [node_id] or len(before.replicas) == 1:
        return before
    return replace(before, wiped=[node_id])


def broker_back(image: Image, node_id: int, defaults: Mapping[str, str]) -> list[PartitionChanged]:
    """Return what a broker that is let in comes to lead: what has no leader."""

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
    """Return what other configs of topics mean for their partitions.

    The image is one in which the configs have changed already. With a smaller
    `min.insync.replicas` nobody may be eligible any longer, and a leader must not hear of the one
    before the other: these records belong into the batch that changes the configs.
    """
    return _settle_each(image, defaults, image.is_active, lambda _: True, names)


def prefer_first_replicas(
    image: Image, defaults: Mapping[str, str], limit: int = 1000
) -> list[PartitionChanged]:
    """Return the records that give partitions back to their preferred leaders."""
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
    """What an operator's election comes to."""

    records: list[PartitionChanged]
    response: ElectLeadersResponse


def elect_leaders(
    image: Image, request: ElectLeadersRequest, defaults: Mapping[str, str]
) -> Elected:
    """Hold the elections that were asked for; without a list, in every partition.

    As in Kafka, the answer without a list names every topic, and of its partitions those in which
    an election was held or failed.
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
    # Each partition once: the second of two elections would not know of the first.
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
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, "the preferred replica leads already")
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
