"""The option of commands that run streaming queries: report their progress to a topic."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.monitor.stream_progress import TOPIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

StreamsTopic = Annotated[
    str | None,
    typer.Option(
        "--streams-topic",
        metavar="TOPIC",
        help="Report progress to this compacted topic, which is created if it is missing. The "
        f"console and the exporter read {TOPIC}.",
    ),
]


def reporting(
    spark: "SparkSession", topic: str | None, client: Mapping[str, str]
) -> AbstractContextManager[object]:
    """Report all queries of a session, if there is a topic; `client` is librdkafka's."""
    if topic is None:
        return nullcontext()
    from barnabas.spark.helpers.progress_reporting import ProgressReporter
    from barnabas.telemetry.findings.causes import explain

    return ProgressReporter(spark, client, topic, lambda text: explain(text).sentence)
