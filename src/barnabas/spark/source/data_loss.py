"""Reports lost records: the query fails, or it continues and logs the loss."""

import logging
from collections.abc import Sequence

from barnabas.spark.query_errors import DataLossError

log = logging.getLogger("barnabas.spark")

GONE_PATIENCE_S = 10.0
"""How long a partition may be unknown to the cluster before it counts as deleted."""

REMEDY = (
    "Some records were lost before they could be read. Set the option failOnDataLoss to false "
    "to continue without them, or start the query with a new checkpoint"
)


def report(losses: Sequence[str], *, fail: bool) -> None:
    """Raise, or log one line a loss."""
    if fail and losses:
        raise DataLossError(f"{REMEDY}. {'; '.join(losses)}.")
    for loss in losses:
        log.warning("Data loss (the query continues because failOnDataLoss is false): %s", loss)
