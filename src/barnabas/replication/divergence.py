"""Finds where two replicas of a log diverge, by their leader epochs (KIP-101, KIP-279).

A follower sends the epoch of its last batch. Where that epoch ends earlier in the leader's log, or
does not exist there, the follower has batches that were never committed. The leader answers with
the last epoch that it shares and where that ends. The follower truncates its log there and fetches
again, until the logs agree.

    leader      [ epoch 1 ............ 90 ][ epoch 3 ....... 120 ]
    follower    [ epoch 1 ................... 100 ][ epoch 2 ... 110 ]

    fetches 110 after epoch 2    response: epoch 1 ends at 90    truncates to 90, fetches on

A follower never truncates its log to its high watermark, which may be older than the leader's: it
would lose records that were acknowledged.
"""

from itertools import pairwise

from barnabas.protocol.fetch import Diverging
from barnabas.storage.epochs import LeaderEpochs


def divergence(
    epochs: LeaderEpochs, end_offset: int, last_epoch: int, offset: int
) -> Diverging | None:
    """Return where the leader's log diverges from one that ends at an offset, if it does."""
    if last_epoch < 0 or not epochs.entries:
        return None
    latest = epochs.entries[-1][0]
    # The leader does not have a later epoch than its last: begin there.
    known, ends_at = epochs.end_offset_for(min(last_epoch, latest), end_offset)
    if known < last_epoch or ends_at < offset:
        return Diverging(known, ends_at)
    return None


def misplacement(epochs: LeaderEpochs, last_epoch: int, offset: int) -> Diverging | None:
    """Return the divergence of a follower whose last batch claims an epoch that began later.

    The checksum does not cover a batch's epoch. One that changed on the follower's disk puts the
    epoch before its start. The follower fetches these batches again.
    """
    for (before, _), (epoch, start) in pairwise(epochs.entries):
        if epoch == last_epoch and offset <= start:
            return Diverging(before, start)
    return None


def common_end(epochs: LeaderEpochs, end_offset: int, diverging: Diverging) -> int:
    """Return the offset to which a follower truncates its log."""
    if not epochs.entries:
        return min(end_offset, diverging.end_offset)
    latest = epochs.entries[-1][0]
    _, ends_at = epochs.end_offset_for(min(diverging.epoch, latest), end_offset)
    return max(0, min(ends_at, diverging.end_offset, end_offset))
