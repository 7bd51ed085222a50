"""The job that turns gold rows into findings and alerts: a thin `foreachBatch`.

    gold_10s -> rules and peers (Spark) -> Arrow -> assess (driver) -> findings, alerts, gpu-alerts

Spark reduces a batch to one narrow row a GPU and window, with what the rules found in it. What
needs memory is assessed on the driver, because state is small there (one record a GPU) and a batch
is a second's work even for 16,384 GPUs.

Exactly once: a batch is a function of its rows and of the state that the batch before left, and
everything it writes carries the batch's number. Files of a batch that runs again replace
themselves; records are published through `publish`, which must send each batch once.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from barnabas.telemetry import arrow, peers, rules, tables
from barnabas.telemetry.alerts import Alert, key_of
from barnabas.telemetry.finding import Window
from barnabas.telemetry.assessment import Assessment, assess
from barnabas.telemetry.assessment_store import StateStore
from barnabas.telemetry.thresholds import Thresholds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Publish = Callable[[Sequence[tuple[bytes, bytes]], int], None]
"""Sends the records (key, value) of a batch to gpu-alerts, once for each batch number."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AlertingJob:
    """What runs for each batch of the stream of gold rows."""

    def __init__(self, lake: Path, thresholds: Thresholds, publish: Publish) -> None:
        self._lake = lake
        self._thresholds = thresholds
        self._publish = publish
        self._store = StateStore(lake / "_state" / "findings")

    def __call__(self, gold: "DataFrame", batch_id: int) -> None:
        """Assess a batch and write what it comes to."""
        batch = reduced(gold, self._thresholds).toArrow()
        assessment = self.assessed(batch, batch_id)
        self._write("findings", arrow.table_of(assessment.findings, tables.FINDINGS), batch_id)
        self._write("alerts", arrow.table_of(assessment.alerts, tables.ALERTS), batch_id)
        if assessment.alerts:
            self._publish([record_of(alert) for alert in assessment.alerts], batch_id)
        self._store.save(batch_id, assessment.state)

    def assessed(self, batch: "pa.Table", batch_id: int) -> Assessment:
        """Return what the reduced rows of a batch come to, given the batch before."""
        before = self._store.after(batch_id - 1)
        windows, found = arrow.windows_of(batch), arrow.findings_of(batch)
        return assess(before, windows, found, self._thresholds)

    def _write(self, table: str, rows: "pa.Table", batch_id: int) -> None:
        arrow.write(rows, arrow.batch_file(self._lake / table, batch_id))


def reduced(gold: "DataFrame", thresholds: Thresholds) -> "DataFrame":
    """Return what the assessment needs of rows of level gpu, with the column `found`."""
    cards = peers.with_peers(gold.where(F.col("level") == "gpu"), thresholds)
    every_rule = (*rules.window_rules(thresholds), peers.straggler())
    rows = rules.with_findings(cards, every_rule).withColumn("xids", F.col("xids.xid"))
    return rows.select(*Window._fields, rules.FOUND)


def record_of(alert: Alert) -> tuple[bytes, bytes]:
    """Return an alert as a record: its key, and its columns as JSON."""
    columns = alert._asdict()
    for name in ("first_seen", "last_seen"):
        columns[name] = _iso(columns[name])
    return key_of(alert).encode(), json.dumps(columns, ensure_ascii=False).encode()


def _iso(time_us: int) -> str:
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


