"""What happens when records are gone: the query stops, or goes on and says so in its log."""

import logging
from collections.abc import Sequence

from barnabas.spark.failures import DataLossError

log = logging.getLogger("barnabas.spark")

GONE_PATIENCE_S = 10.0
"""How long a partition may be unknown to the cluster before it counts as deleted."""

REMEDY = (
    "Some records were lost before they could be read. Set the option failOnDataLoss to false "
    "to go on without them, or start anew from another checkpoint"
)


def report(losses: Sequence[str], *, fail: bool) -> None:
    """Raise, or log one line a loss."""
    if fail and losses:
        raise DataLossError(f"{REMEDY}. {'; '.join(losses)}.")
    for loss in losses:
        log.warning("Data loss, and failOnDataLoss is false: %s", loss)
