"""The names of all options of `format("barnabas")`, for reads and for writes.

One dict of options may serve both sides: a read ignores the names of writes, and a write those
of reads. Names that neither side knows are refused.
"""

from collections.abc import Iterable
from difflib import get_close_matches

PREFIX = "kafka."
BOOTSTRAP = "bootstrap.servers"

READ_NAMES = (
    "assign",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "includeFetchTime",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    BOOTSTRAP,
)
WRITE_NAMES = (
    "topic",
    "includeHeaders",
    "exactlyOnce",
    "transactionalIdPrefix",
    "txnAppId",
    "txnVersion",
    "checkReplays",
    PREFIX + BOOTSTRAP,
)
SPARK_NAMES = frozenset({"path", "checkpointlocation", "mergeschema", "queryname"})
"""Options that Spark itself adds or reads, in lower case."""


def unknown_names(given: Iterable[str], other_side: Iterable[str], own: Iterable[str]) -> list[str]:
    """Return the names, in lower case, that no side, Spark or the client accepts."""
    known = {name.lower() for name in (*own, *other_side)} | SPARK_NAMES
    return [name for name in given if name not in known and not name.startswith(PREFIX)]


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a name in lower case, if there is one."""
    spelled = {each.lower(): each for each in names}
    close = get_close_matches(name, spelled, n=1)
    return spelled[close[0]] if close else None
