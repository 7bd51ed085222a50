"""The dashboards of Spark's queries and of GPU telemetry."""

from tools.dashboards.grafana import Board, Panel, Query, Row, Variable
from tools.dashboards.promql import rate

STREAM_NOW = Row(
    title="Now",
    panels=[
        Panel(
            title="Queries",
            queries=[
                Query("max by (stream, state) (barnabas_stream_state{@} == 1)", "is"),
                Query("max by (stream) (barnabas_stream_lag{@})", "lag"),
                Query("max by (stream) (barnabas_stream_rows_per_second{@})", "rows/s"),
                Query("max by (stream) (barnabas_stream_batch_seconds{@})", "batch s"),
                Query("max by (stream) (barnabas_stream_restarts_total{@})", "restarts"),
            ],
            kind="table",
            width=16,
        ),
        Panel(
            title="Silent for",
            queries=[
                Query(
                    "time() - max by (stream) (barnabas_stream_updated_timestamp_seconds{@})",
                    "{{stream}}",
                )
            ],
            unit="s",
            about="Time since the last report. A query without records reports every ten seconds.",
        ),
    ],
)
STREAM_SPEED = Row(
    title="Speed",
    panels=[
        Panel(
            title="Rows processed",
            queries=[Query("max by (stream) (barnabas_stream_rows_per_second{@})", "{{stream}}")],
            unit="cps",
            about="How fast the last batch was. It must stay above the rows that arrive.",
        ),
        Panel(
            title="Rows that arrive",
            queries=[Query("max by (stream) (barnabas_stream_input_per_second{@})", "{{stream}}")],
            unit="cps",
        ),
        Panel(
            title="Lag",
            queries=[Query("max by (stream) (barnabas_stream_lag{@})", "{{stream}}")],
            about="Records between the end of the last batch and the end of the topics.",
        ),
        Panel(
            title="Duration of a batch",
            queries=[Query("max by (stream) (barnabas_stream_batch_seconds{@})", "{{stream}}")],
            unit="s",
            about="Longer than the trigger means that the query cannot keep up.",
        ),
        Panel(
            title="State: rows",
            queries=[Query("max by (stream) (barnabas_stream_state_rows{@})", "{{stream}}")],
            about="State that only grows lacks a watermark.",
        ),
        Panel(
            title="State: memory",
            queries=[Query("max by (stream) (barnabas_stream_state_bytes{@})", "{{stream}}")],
            unit="bytes",
        ),
        Panel(
            title="Restarts",
            queries=[
                Query(
                    "max by (stream) (increase(barnabas_stream_restarts_total{@}[15m]))",
                    "{{stream}}",
                )
            ],
            about="Within 15 minutes.",
        ),
    ],
)
STREAMS = Board(
    name="streams",
    title="Spark jobs",
    about="Streaming queries that report their progress to the topic of streams.",
    matchers='cluster="$cluster", stream=~"$stream"',
    variables=[
        Variable(
            name="stream",
            title="Query",
            metric="barnabas_stream_updated_timestamp_seconds{@}",
            label="stream",
            takes_several=True,
        )
    ],
    rows=[STREAM_NOW, STREAM_SPEED],
)

COLLECTORS = Row(
    title="Collectors",
    panels=[
        Panel(
            title="Exporters that answer",
            queries=[
                Query("sum by (instance) (barnabas_collector_up{@})", "{{instance}} up"),
                Query("sum by (instance) (barnabas_collector_targets{@})", "{{instance}} targets"),
            ],
        ),
        Panel(
            title="Slowest scrapes",
            queries=[Query("topk(5, barnabas_collector_scrape_duration_seconds{@})", "{{target}}")],
            unit="s",
        ),
        Panel(
            title="Failed scrapes, skipped rounds",
            queries=[
                Query(
                    "sum by (instance) (increase(barnabas_collector_scrape_failures_total{@}[5m]))",
                    "{{instance}} failed",
                ),
                Query(
                    "sum by (instance) (increase(barnabas_collector_rounds_skipped_total{@}[5m]))",
                    "{{instance}} skipped",
                ),
            ],
        ),
        Panel(
            title="Samples sent",
            queries=[
                Query(
                    rate("barnabas_collector_samples_total", by="instance"),
                    "{{instance}}",
                )
            ],
            unit="cps",
        ),
        Panel(
            title="Stored until a broker answers",
            queries=[Query("barnabas_collector_spool_messages{@}", "{{instance}}")],
            is_bad_from=1,
        ),
        Panel(
            title="Lost messages, unreadable lines",
            queries=[
                Query(
                    "increase(barnabas_collector_dropped_total{@}[5m]) + "
                    "increase(barnabas_collector_failed_total{@}[5m])",
                    "{{instance}} lost",
                ),
                Query(
                    "increase(barnabas_collector_refused_total{@}[5m])", "{{instance}} unreadable"
                ),
            ],
            is_bad_from=1,
        ),
    ],
)
PIPELINE = Row(
    title="Topics and jobs",
    panels=[
        Panel(
            title="Messages",
            queries=[
                Query(
                    rate(
                        "kafka_server_brokertopicmetrics_messagesin_total",
                        'topic=~"gpu-telemetry|gpu-alerts|gpu-latest"',
                        by="topic",
                    ),
                    "{{topic}}",
                )
            ],
            unit="cps",
        ),
        Panel(
            title="Refused messages",
            queries=[
                Query(
                    rate(
                        "kafka_server_brokertopicmetrics_messagesin_total",
                        'topic="gpu-telemetry-dlq"',
                    ),
                    "dead-letter topic",
                )
            ],
            unit="cps",
            about="`barnabas telemetry dlq` shows why.",
        ),
        Panel(
            title="Lag of the jobs",
            queries=[
                Query(
                    "max by (stream) (barnabas_stream_lag"
                    '{@, stream=~"silver|gold.*|findings|bronze|alerts.*"})',
                    "{{stream}}",
                )
            ],
            about="With `barnabas telemetry run --streams-topic`.",
        ),
    ],
)
CARDS = Row(
    title="Cards (where Prometheus itself scrapes dcgm-exporter)",
    panels=[
        Panel(
            title="Utilization",
            queries=[Query("avg by (Hostname) (DCGM_FI_DEV_GPU_UTIL)", "{{Hostname}}")],
            unit="percent",
            maximum=100,
            about="A card counts as busy when anything runs on it; SM activity says how much.",
        ),
        Panel(
            title="SM activity",
            queries=[Query("avg by (Hostname) (DCGM_FI_PROF_SM_ACTIVE)", "{{Hostname}}")],
            unit="percentunit",
            maximum=1,
        ),
        Panel(
            title="Memory used",
            queries=[
                Query(
                    "sum by (Hostname) (DCGM_FI_DEV_FB_USED) / "
                    "sum by (Hostname) (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
                    "{{Hostname}}",
                )
            ],
            unit="percentunit",
            maximum=1,
        ),
        Panel(
            title="Power",
            queries=[Query("sum by (Hostname) (DCGM_FI_DEV_POWER_USAGE)", "{{Hostname}}")],
            unit="watt",
            is_stacked=True,
        ),
        Panel(
            title="Hottest cards",
            queries=[Query("topk(8, DCGM_FI_DEV_GPU_TEMP)", "{{Hostname}} {{gpu}}")],
            unit="celsius",
        ),
        Panel(
            title="Cards with an XID error",
            queries=[Query("DCGM_FI_DEV_XID_ERRORS > 0", "{{Hostname}} {{gpu}}")],
            about="The code of the last XID of each card; docs/telemetry.md lists findings.",
        ),
    ],
)
GPU = Board(
    name="gpu",
    title="GPU telemetry",
    about="The way of GPU samples: collectors, topics, jobs; and the cards.",
    rows=[COLLECTORS, PIPELINE, CARDS],
)
