"""Chooses what a simulated member of a share group says of the records that it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from barnabas.node.share.share_rules import GroupRules
from barnabas.node.share.share_sessions import Place
from barnabas.share.window import AcknowledgeType
from barnabas.sim.checks.share_checks import Delivery
from barnabas.sim.clients.share_requests import AckBatch

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
GAP, RENEW = AcknowledgeType.GAP, AcknowledgeType.RENEW
FORGETS, RENEWS, NAMES_OTHERS, MIXES = 0.1, 0.2, 0.26, 0.45
"""The draws below which a member does something else than to say one thing of all records."""
USUAL = (ACCEPT, ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT, GAP)


@dataclass
class Said:
    """What a member says of offsets of one partition, in their order."""

    offsets: list[int]
    kinds: list[AcknowledgeType]
    deliveries: Mapping[int, Delivery]


def choose(
    rng: Random, held: Mapping[int, Delivery], rules: GroupRules, *, is_careful: bool
) -> Said | None:
    """Choose what to say of records; None to say nothing this time."""
    offsets, known = sorted(held), dict(held)
    if is_careful:
        return Said(offsets, [ACCEPT] * len(offsets), known)
    draw = rng.random()
    if draw < FORGETS or (draw < RENEWS and not rules.can_renew and rng.random() < 0.9):
        return None
    if draw < RENEWS:
        return Said(offsets, [RENEW] * len(offsets), known)
    if draw < NAMES_OTHERS:  # offsets that it may not hold
        offsets = sorted({*offsets, rng.randint(0, offsets[-1]), offsets[-1] + rng.randint(1, 3)})
        return Said(offsets, [rng.choice((ACCEPT, RELEASE))] * len(offsets), known)
    if rng.random() < 0.3:
        offsets = offsets[: rng.randint(1, len(offsets))]
    if draw < MIXES:
        return Said(offsets, [rng.choice(USUAL) for _ in offsets], known)
    return Said(offsets, [rng.choice(USUAL)] * len(offsets), known)


def batches_for(rng: Random, said: Mapping[Place, Said]) -> dict[Place, list[AckBatch]]:
    """Return the batches of a request: one answer for a run, or one for each offset."""
    return {place: _batches(rng, each) for place, each in said.items()}


def _batches(rng: Random, said: Said) -> list[AckBatch]:
    singly = rng.random() < 0.3
    found: list[AckBatch] = []
    for offset, kind in zip(said.offsets, said.kinds, strict=True):
        before = found[-1] if found else None
        follows = before is not None and before.last + 1 == offset
        if before is None or not follows or not (singly or before.kinds == [kind]):
            found.append(AckBatch(offset, offset, [kind]))
        elif singly:
            found[-1] = AckBatch(before.first, offset, [*before.kinds, kind])
        else:
            found[-1] = before._replace(last=offset)
    return found
