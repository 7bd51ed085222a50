"""Source metrics in a query's progress: the rows that the sources read, and their lag.

    from barnabas.spark import observed, source_metrics

    query = observed(spark.readStream.format("barnabas")...load()).writeStream...start()
    source_metrics(query.lastProgress)

A source written in Java names itself and hands metrics to Spark (`ReportsSourceMetrics`). PySpark's
API has no such methods: Spark shows a Python source as the name of a Java class. It does
show the latest offset that a Python source reports, in `query.lastProgress` and to every
StreamingQueryListener. Our metrics travel there, under a name that no topic can have:

    "latestOffset": {"@metrics": {"source": "barnabas: topic orders at ...", ...}, "orders": ...}

Only tasks know how many bytes they read and how long that took, and they cannot report to the
driver; `observed` has Spark count rows and bytes as they pass, and the times that the option
includeFetchTime adds to them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.model.ids import TopicPartition
from barnabas.spark.client_properties import BOOTSTRAP
from barnabas.spark.schema import FETCH_TIME
from barnabas.spark.source.offset_json import Offsets
from barnabas.spark.source.source_options import Assign, ReadSettings, Subscribe
from barnabas.spark.source.stream_positions import position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryProgress

METRICS = "@metrics"
OBSERVED = "barnabas"


@dataclass(frozen=True, kw_only=True)
class SourceMetrics:
    """The metrics of one source in one batch."""

    source: str
    """A description of the source: its topics and its brokers."""
    rows: int
    bytes: int | None
    """The bytes of keys and values; None if the stream is not `observed`."""
    fetch_ms: float | None
    """How long tasks waited for records and decoded them, in total; None without the option
    includeFetchTime."""
    offsets_behind_latest: int
    """The number of offsets between the end of the batch and the end of the topics."""
    behind: Mapping[TopicPartition, int]
    """The same for each partition."""


def source_metrics(progress: "StreamingQueryProgress") -> list[SourceMetrics]:
    """Return the metrics of each source of this package that a query reads.

    Takes `query.lastProgress`, an element of `query.recentProgress`, or the `progress` of a
    StreamingQueryListener's event.
    """
    observation = progress.observedMetrics.get(OBSERVED)
    counted = {} if observation is None else observation.asDict()
    found = []
    for each in progress.sources:
        latest = _latest(each.latestOffset)
        if METRICS not in latest:
            continue
        reached = position(json.loads(each.endOffset)).offsets
        behind = behind_latest(position(latest).offsets, reached)
        found.append(
            SourceMetrics(
                source=latest[METRICS]["source"],
                rows=each.numInputRows,
                bytes=(counted["bytes"] or 0) if counted else None,
                fetch_ms=(counted["fetch_us"] or 0) / 1000 if "fetch_us" in counted else None,
                offsets_behind_latest=sum(behind.values()),
                behind=behind,
            )
        )
    return found


def _latest(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:  # other sources have other formats
        return {}
    return found if isinstance(found, dict) else {}


def observed(frame: "DataFrame") -> "DataFrame":
    """Count rows and bytes (of keys and values) of a stream as they pass, for `source_metrics`.

    The counts are in `observedMetrics` of the query's progress. One stream of a query can be
    observed; take it before filters and joins, with its columns `key` and `value`. With the option
    includeFetchTime, the times are added up, and their column ends here.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own way to write it

    size = F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))
    counts = [F.count(F.lit(1)).alias("rows"), F.sum(size).alias("bytes")]
    if FETCH_TIME in frame.columns:
        counts.append(F.sum(FETCH_TIME).alias("fetch_us"))
    return frame.observe(OBSERVED, *counts).drop(FETCH_TIME)


def behind_latest(latest: Offsets, reached: Offsets) -> dict[TopicPartition, int]:
    """Return the lag of each partition, in offsets."""
    return {place: max(0, latest[place] - reached.get(place, 0)) for place in sorted(latest)}


def reported(settings: ReadSettings, latest: Offsets, reached: Offsets) -> dict[str, str | int]:
    """Return the metrics of a source, under the names of Spark's connector if it has them."""
    behind = behind_latest(latest, reached).values()
    total = sum(behind)
    return {
        "source": described(settings),
        "offsetsBehindLatest": total,
        "minOffsetsBehindLatest": min(behind, default=0),
        "maxOffsetsBehindLatest": max(behind, default=0),
        "avgOffsetsBehindLatest": round(total / max(1, len(behind))),
    }


def described(settings: ReadSettings) -> str:
    """Return a description of what is read."""
    subscription = settings.subscription
    if isinstance(subscription, Assign):
        what = f"partition {', '.join(map(str, sorted(subscription.partitions)))}"
    elif isinstance(subscription, Subscribe):
        what = f"topic {', '.join(sorted(subscription.topics))}"
    else:
        what = f"topics like {subscription.pattern}"
    return f"barnabas: {what} at {settings.client[BOOTSTRAP]}"
