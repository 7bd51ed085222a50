"""Where two copies of a log part ways, found by leader epochs (KIP-101, KIP-279).

A follower says in which epoch the last batch it has was written. Where the leader's log has that
epoch end earlier, or does not have it at all, the follower has batches that never were committed.
Both sides step down through their epochs until they meet: the leader answers the last epoch
that it shares and where that ends, the follower cuts its log there and asks again.

    leader      [ epoch 1 ............ 90 ][ epoch 3 ....... 120 ]
    follower    [ epoch 1 ................... 100 ][ epoch 2 ... 110 ]

    fetches 110 after epoch 2    answered: epoch 1 ends at 90    cuts to 90, fetches on

Never is a log cut to its high watermark, which a follower hears of late: between its fetch and the
next it would throw away what was acknowledged.
"""

from itertools import pairwise

from barnabas.protocol.fetch import Diverging
from barnabas.storage.epochs import LeaderEpochs


def divergence(
    epochs: LeaderEpochs, end_offset: int, last_epoch: int, offset: int
) -> Diverging | None:
    """Return where a leader's log leaves that of someone who has it up to an offset, if it does."""
    if last_epoch < 0 or not epochs.entries:
        return None
    latest = epochs.entries[-1][0]
    # An epoch that is not known yet cannot be shared: begin with the last that is.
    known, ends_at = epochs.end_offset_for(min(last_epoch, latest), end_offset)
    if known < last_epoch or ends_at < offset:
        return Diverging(known, ends_at)
    return None


def misplacement(epochs: LeaderEpochs, last_epoch: int, offset: int) -> Diverging | None:
    """Return what a leader answers a follower whose last batch cannot be of the epoch it says.

    No checksum covers a batch's epoch: one that changed on the follower's disk puts the epoch where
    it had not begun yet. What the follower has of it is to be fetched again.
    """
    for (before, _), (epoch, start) in pairwise(epochs.entries):
        if epoch == last_epoch and offset <= start:
            return Diverging(before, start)
    return None


def common_end(epochs: LeaderEpochs, end_offset: int, diverging: Diverging) -> int:
    """Return where a follower's log is to be cut, so that what is left may be the leader's."""
    if not epochs.entries:
        return min(end_offset, diverging.end_offset)
    latest = epochs.entries[-1][0]
    _, ends_at = epochs.end_offset_for(min(diverging.epoch, latest), end_offset)
    return max(0, min(ends_at, diverging.end_offset, end_offset))
