"""Reports the progress of a session's streaming queries to a compacted topic.

    from barnabas.spark import report_progress

    with report_progress(spark, "127.0.0.1:9092"):
        query.awaitTermination()

`barnabas console` and `barnabas exporter` read the topic. Spark's own threads do nothing but leave
the report in a mailbox; `progress_topic.py` sends it. A failure of the topic never reaches a query.
"""

import json
import time
from collections.abc import Callable, Collection, Mapping
from threading import Condition
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pyspark.sql.streaming.listener import StreamingQueryListener

from barnabas.logs import get
from barnabas.monitor.stream_progress import TOPIC, StreamProgress
from barnabas.spark.helpers.progress_topic import BOOTSTRAP, ProgressTopic
from barnabas.spark.helpers.stream_reports import Explain, StreamReports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

LAST_EVENTS_S = 3.0

log = get("barnabas.spark")


class ProgressListener(StreamingQueryListener):
    """Makes a report of each event of Spark."""

    def __init__(self, reports: StreamReports, send: Callable[[StreamProgress], None]) -> None:
        self._reports = reports
        self._send = send
        self._changed = Condition()

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802 - Spark's name
        """Report a start. Spark waits for it before the first batch."""
        self._report(
            lambda: self._reports.started(event.name, str(event.id), str(event.runId), now_ms())
        )

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802 - Spark's name
        """Report a batch."""
        self._report(lambda: self._reports.progressed(json.loads(event.progress.json), now_ms()))

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:  # noqa: N802 - Spark's name
        """Report that there was nothing to read."""
        self._report(lambda: self._reports.idle(str(event.id), str(event.runId), now_ms()))

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802 - Spark's name
        """Report an end."""
        self._report(
            lambda: self._reports.ended(str(event.id), str(event.runId), event.exception, now_ms())
        )

    def wait_for_ends(self, active: Collection[str], timeout_s: float) -> None:
        """Wait for the events of queries that have ended; Spark sends them a little later."""
        with self._changed:
            self._changed.wait_for(lambda: self._reports.running <= set(active), timeout_s)

    def _report(self, make: Callable[[], StreamProgress | None]) -> None:
        try:
            row = make()
        except Exception as error:  # noqa: BLE001 - reports must not disturb the query
            log.warning("a report of a streaming query could not be made", error=repr(error))
            return
        if row is not None:
            self._send(row)
        with self._changed:
            self._changed.notify_all()


class ProgressReporter:
    """Reports a session's queries until it is closed."""

    def __init__(
        self,
        spark: "SparkSession",
        client: Mapping[str, str],
        topic: str,
        explain: Explain | None = None,
    ) -> None:
        self._spark = spark
        self._topic = ProgressTopic(client, topic)
        self._listener = ProgressListener(StreamReports(explain), self._topic.send)
        spark.streams.addListener(self._listener)

    @property
    def undelivered(self) -> int:
        """Reports that were dropped or not delivered."""
        return self._topic.undelivered

    def close(self) -> None:
        """Stop listening and send the last reports, within seconds."""
        try:
            active = [str(query.runId) for query in self._spark.streams.active]
            self._listener.wait_for_ends(active, LAST_EVENTS_S)
            self._spark.streams.removeListener(self._listener)
        except Exception as error:  # noqa: BLE001 - the session may have ended
            log.debug("the listener was gone", error=repr(error))
        self._topic.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def report_progress(
    spark: "SparkSession",
    bootstrap: str,
    *,
    topic: str = TOPIC,
    properties: Mapping[str, str] | None = None,
    explain: Explain | None = None,
) -> ProgressReporter:
    """Report all streaming queries of a session, also those that start later.

    The topic is created with `cleanup.policy=compact` if it is missing. `properties` are those of
    librdkafka, such as TLS and login. `explain` turns the text of an exception into a sentence.
    Close the result, or use it in a `with` block, so that the last reports are sent.
    """
    client = {BOOTSTRAP: bootstrap, **(properties or {})}
    return ProgressReporter(spark, client, topic, explain)


def now_ms() -> int:
    """Return the time of a report."""
    return time.time_ns() // 1_000_000
