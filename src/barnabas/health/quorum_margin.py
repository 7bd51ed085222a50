"""Compute how many voters the metadata quorum can lose, and which brokers could become voters.

A voter is identified by its node id and its disk (KIP-853). A broker that returns with an empty
disk follows the metadata log under its node id, but has no vote until an operator promotes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from barnabas.model.phrases import plural

if TYPE_CHECKING:
    from barnabas.health.cluster_facts import Member

SILENCE_MS = 5_000
"""A voter that did not fetch for longer is missing; voters fetch at least every half second."""
LAG_RECORDS = 1_000
"""A voter that is further behind cannot become leader soon."""
ENOUGH_VOTERS = 3
"""The smallest number of voters that survives the loss of one."""
UNKNOWN_ADDRESS = "HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """Which voters count, and which brokers could become voters."""

    voters: list[int]
    caught_up: list[int]
    """Voters that fetch from the controller and have nearly all of the log."""
    returned: list[int]
    """Brokers that run with a voter's node id and another disk, and so without a vote."""
    without_vote: list[int]
    """All other running brokers that are not voters."""
    losses_left: int
    """How many more voters can be lost while a majority is left."""

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return asdict(self)


def votes(voters: Sequence["Member"], observers: Sequence["Member"]) -> Votes:
    """Compute the margin from the controller's list of voters and observers."""
    numbers = [each.id for each in voters]
    caught_up = [each.id for each in voters if not (lacks_contact(each) or lags(each))]
    running = sorted({each.id for each in observers if not lacks_contact(each)} - set(caught_up))
    return Votes(
        voters=numbers,
        caught_up=caught_up,
        returned=[number for number in running if number in numbers],
        without_vote=[number for number in running if number not in numbers],
        losses_left=max(0, len(caught_up) - (len(numbers) // 2 + 1)),
    )


def lost_votes(found: Votes, addresses: Mapping[int, str]) -> Iterator[str]:
    """Return the missing votes, the effect of one more loss, and the commands that repair it."""
    is_last = len(found.caught_up) < len(found.voters) and not found.losses_left
    if is_last and len(found.voters) >= ENOUGH_VOTERS:
        yield _next_loss(found)
    for number in found.returned:
        yield (
            f"broker {number} came back with an empty disk and does not vote; to give it its vote "
            f"again: `barnabas cluster demote {number}`, then `{_promote(number, addresses)}`"
        )
    if is_last:
        yield from _candidates(found, addresses)


def too_few_voters(found: Votes, addresses: Mapping[int, str]) -> Iterator[str]:
    """Return a warning if the quorum is too small to lose a voter and others could vote."""
    could_vote = len(found.caught_up) + len(found.without_vote)
    complete = len(found.caught_up) == len(found.voters)
    if complete and not found.losses_left and could_vote >= ENOUGH_VOTERS:
        yield _next_loss(found)
        yield from _candidates(found, addresses)


def lacks_contact(member: "Member") -> bool:
    """Return whether a member has not fetched from the controller for too long."""
    return member.last_contact_ms is None or member.last_contact_ms > SILENCE_MS


def lags(member: "Member") -> bool:
    """Return whether a member is too far behind to become leader soon."""
    return member.lag is not None and member.lag > LAG_RECORDS


def _next_loss(found: Votes) -> str:
    return (
        f"{len(found.caught_up)} of {plural(len(found.voters), 'voter')} can decide on metadata: "
        "if one more is lost, no controller can be elected"
    )


def _candidates(found: Votes, addresses: Mapping[int, str]) -> Iterator[str]:
    for number in found.without_vote:
        command = _promote(number, addresses)
        yield f"broker {number} runs and does not vote; to give it a vote: `{command}`"


def _promote(number: int, addresses: Mapping[int, str]) -> str:
    address = addresses.get(number, UNKNOWN_ADDRESS)
    return f"barnabas cluster promote {number} --peer-listen {address}"
