"""Whether a cluster is well, in one word and the reasons for it.

healthy       every partition has the replicas it is to have, all in sync; every voter is heard
degraded      all data can be read and written; what the next failure would need is missing
unavailable   a partition cannot be read, or not be written with acks=all, or nobody controls
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from barnabas.cli.durations import format_duration
from barnabas.cli.output import plural
from barnabas.cli.overview import SILENT, UP, Broker, Overview
from barnabas.cli.scopes import Place

SILENCE_MS = 5_000
"""A voter that was not heard for longer is missing; they fetch every half second at the latest."""
LAG_RECORDS = 1_000
"""A voter that is further behind could not lead soon."""
DISK_LEFT = 0.05
"""With less of its disk left a broker will soon refuse writes."""
SHOWN = 3
"""How many of many are named in a sentence."""


class Verdict(StrEnum):
    """How a cluster is, in one word."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNAVAILABLE = "unavailable"

    @property
    def exit_code(self) -> int:
        """The exit code of `barnabas cluster health`."""
        return list(Verdict).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A verdict, and why."""

    verdict: Verdict
    reasons: list[str]

    def as_json(self) -> dict[str, object]:
        """Return what --json prints."""
        return {"verdict": self.verdict.value, "reasons": self.reasons}


def verdict(found: Overview) -> Health:
    """Say how a cluster is, and why."""
    grave, minor = list(_grave(found)), list(_minor(found))
    if grave:
        return Health(verdict=Verdict.UNAVAILABLE, reasons=grave + minor)
    if minor:
        return Health(verdict=Verdict.DEGRADED, reasons=minor)
    return Health(verdict=Verdict.HEALTHY, reasons=[])


def _grave(found: Overview) -> Iterable[str]:
    if found.quorum is None or found.quorum.leader is None:
        yield "no controller: metadata cannot change; start enough voters for a majority"
    if found.partitions.offline:
        yield f"{_named(found.partitions.offline)} without a leader; start a broker that has a copy"
    refusing = [each for each in found.partitions.under_min_isr if each not in _offline(found)]
    for broker in filter(_leaves_waiting, found.brokers):
        led = plural(broker.leaders, "partition")
        yield f"broker {broker.id} at {broker.address} leads {led} and is silent: {broker.silence}"
    if refusing:
        yield f"{_named(refusing)} refusing acks=all: fewer copies in sync than min.insync.replicas"


def _minor(found: Overview) -> Iterable[str]:
    yield from found.troubles
    for broker in found.brokers:
        if broker.state != UP and not _leaves_waiting(broker):
            why = "" if broker.silence is None else f": {broker.silence}"
            yield f"broker {broker.id} at {broker.address} is {broker.state}{why}"
        if broker.disk_free is not None and broker.disk_free < DISK_LEFT:
            yield f"broker {broker.id} has {broker.disk_free:.1%} of its disk left"
    if found.partitions.under_replicated:
        yield f"{_named(found.partitions.under_replicated)} with copies out of sync"
    if found.partitions.below_replication_factor:
        yield (
            f"{_named(found.partitions.below_replication_factor)} below the replication factor: "
            "the controller adds replicas once enough brokers are up; topics that an earlier "
            "release made need `barnabas partition repair`"
        )
    if found.partitions.replicas_at_min_isr:
        yield (
            f"{_named(found.partitions.replicas_at_min_isr)} with no more replicas than "
            "min.insync.replicas: without one broker they refuse acks=all; "
            "`barnabas partition repair` adds replicas"
        )
    for voter in found.quorum.voters if found.quorum is not None else ():
        if voter.last_contact_ms is None or voter.last_contact_ms > SILENCE_MS:
            heard = voter.last_contact_ms
            when = "since its election" if heard is None else f"for {format_duration(heard)}"
            yield f"voter {voter.id} has not been heard by the controller {when}"
        elif voter.lag is not None and voter.lag > LAG_RECORDS:
            yield f"voter {voter.id} is {plural(voter.lag, 'record')} behind"


def _leaves_waiting(broker: Broker) -> bool:
    """Tell whether clients wait for a broker that has not been replaced yet."""
    return broker.state == SILENT and broker.leaders > 0


def _offline(found: Overview) -> set[Place]:
    return set(found.partitions.offline)


def _named(places: Sequence[Place]) -> str:
    names = ", ".join(f"{topic}-{number}" for topic, number in places[:SHOWN])
    more = "" if len(places) <= SHOWN else ", ..."
    return f"{plural(len(places), 'partition')} ({names}{more})"
