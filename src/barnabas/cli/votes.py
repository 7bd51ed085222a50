"""How many voters the metadata quorum can still lose, and which brokers could vote besides.

A voter is known by its number and its disk (KIP-853). A broker that comes back with an empty disk
follows the metadata log under its number, but its vote is lost until an operator gives it one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from barnabas.cli.output import plural

if TYPE_CHECKING:
    from barnabas.cli.overview import Member

SILENCE_MS = 5_000
"""A voter that was not heard for longer is missing; they fetch every half second at the latest."""
LAG_RECORDS = 1_000
"""A voter that is further behind could not lead soon."""
ENOUGH_VOTERS = 3
"""So few voters stand the loss of one."""
UNKNOWN_ADDRESS = "HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """Whose votes count, and whose could."""

    voters: list[int]
    caught_up: list[int]
    """Voters that the controller hears, and that have nearly all of the log."""
    returned: list[int]
    """Brokers that run under a voter's number with another disk, and so without a vote."""
    without_vote: list[int]
    """All other brokers that run and do not vote."""
    losses_left: int
    """How many voters more can be lost while a majority is left."""

    def as_json(self) -> dict[str, object]:
        """Return what --json prints."""
        return asdict(self)


def votes(voters: Sequence["Member"], observers: Sequence["Member"]) -> Votes:
    """Count votes by what the controller told of voters and observers."""
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
    """Say which votes are missing, what one more loss would mean, and what brings them back."""
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
    """Say where no vote is missing, and yet a loss would be too many that others could make up."""
    could_vote = len(found.caught_up) + len(found.without_vote)
    complete = len(found.caught_up) == len(found.voters)
    if complete and not found.losses_left and could_vote >= ENOUGH_VOTERS:
        yield _next_loss(found)
        yield from _candidates(found, addresses)


def lacks_contact(member: "Member") -> bool:
    """Tell whether the controller has not heard of a member for too long."""
    return member.last_contact_ms is None or member.last_contact_ms > SILENCE_MS


def lags(member: "Member") -> bool:
    """Tell whether a member is so far behind that it could not lead soon."""
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
