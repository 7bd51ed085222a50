"""Judge the health of a cluster: healthy, degraded or unavailable, with the reasons.

healthy       every partition has all its replicas in sync; every voter is reachable
degraded      all data can be read and written, but the next failure may stop that
unavailable   a partition cannot be read or not be written with acks=all, or there is no controller

A warning is about the setup of a cluster: nothing is missing, but it would not survive a loss.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas.health.cluster_facts import SILENT, UP, Broker, Overview, Place, Quorum
from barnabas.health.quorum_margin import lacks_contact, lags, lost_votes, too_few_voters
from barnabas.model.phrases import format_duration, plural

DISK_LEFT = 0.05
"""With a smaller free share of its disk, a broker will soon reject writes."""
SHOWN = 3
"""The largest number of items that a message names."""


class Verdict(StrEnum):
    """The health of a cluster."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNAVAILABLE = "unavailable"

    @property
    def exit_code(self) -> int:
        """The exit code of `barnabas cluster health`."""
        return list(Verdict).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of a cluster, with the reasons."""

    verdict: Verdict
    reasons: list[str]
    warnings: list[str] = field(default_factory=list)
    """What an operator should change, without effect on the verdict."""

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {
            "verdict": self.verdict.value,
            "reasons": self.reasons,
            "warnings": self.warnings,
        }


def verdict(found: Overview) -> Health:
    """Return the health of a cluster."""
    grave, minor, warnings = list(_grave(found)), list(_minor(found)), list(_warnings(found))
    word = Verdict.UNAVAILABLE if grave else Verdict.DEGRADED if minor else Verdict.HEALTHY
    return Health(verdict=word, reasons=grave + minor, warnings=warnings)


def _grave(found: Overview) -> Iterable[str]:
    if found.quorum is None or found.quorum.leader is None:
        yield "no controller: metadata cannot change; start enough voters for a majority"
    if found.partitions.offline:
        named = _named(found.partitions.offline)
        yield f"{named} without a leader; start a broker that has a replica"
    refusing = [each for each in found.partitions.under_min_isr if each not in _offline(found)]
    for broker in filter(_leaves_waiting, found.brokers):
        led = f"leads {plural(broker.leaders, 'partition')}"
        where = f"broker {broker.id} at {broker.address}"
        yield f"{where} {led} and does not answer: {broker.silence}"
    if refusing:
        named = _named(refusing)
        yield f"{named} rejecting acks=all: fewer in-sync replicas than min.insync.replicas"


def _minor(found: Overview) -> Iterable[str]:
    yield from found.troubles
    for broker in found.brokers:
        if broker.state != UP and not _leaves_waiting(broker):
            why = "" if broker.silence is None else f": {broker.silence}"
            yield f"broker {broker.id} at {broker.address} is {broker.state}{why}"
        if broker.disk_free is not None and broker.disk_free < DISK_LEFT:
            yield f"broker {broker.id} has {broker.disk_free:.1%} of its disk left"
    if found.partitions.under_replicated:
        yield f"{_named(found.partitions.under_replicated)} with replicas out of sync"
    if found.partitions.below_replication_factor:
        yield (
            f"{_named(found.partitions.below_replication_factor)} below the replication factor: "
            "the controller adds replicas once enough brokers are up; topics that an earlier "
            "release created need `barnabas partition repair`"
        )
    if found.partitions.replicas_at_min_isr:
        yield (
            f"{_named(found.partitions.replicas_at_min_isr)} with no more replicas than "
            "min.insync.replicas: without one broker they reject acks=all; "
            "`barnabas partition repair` adds replicas"
        )
    if found.quorum is not None and found.quorum.leader is not None:
        yield from _missing_voters(found.quorum)


def _missing_voters(quorum: Quorum) -> Iterable[str]:
    votes = quorum.votes
    for voter in quorum.voters:
        if voter.id in votes.returned:
            continue
        if lacks_contact(voter):
            heard = voter.last_contact_ms
            when = "since its election" if heard is None else f"for {format_duration(heard)}"
            yield f"voter {voter.id} has not fetched from the controller {when}"
        elif lags(voter):
            yield f"voter {voter.id} is {plural(voter.lag or 0, 'record')} behind"
    yield from lost_votes(votes, quorum.addresses)


def _warnings(found: Overview) -> Iterable[str]:
    if found.quorum is not None and found.quorum.leader is not None:
        yield from too_few_voters(found.quorum.votes, found.quorum.addresses)


def _leaves_waiting(broker: Broker) -> bool:
    """Return whether clients still wait for a broker that has failed."""
    return broker.state == SILENT and broker.leaders > 0


def _offline(found: Overview) -> set[Place]:
    return set(found.partitions.offline)


def _named(places: Sequence[Place]) -> str:
    names = ", ".join(f"{topic}-{number}" for topic, number in places[:SHOWN])
    more = "" if len(places) <= SHOWN else ", ..."
    return f"{plural(len(places), 'partition')} ({names}{more})"
