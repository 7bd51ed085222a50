"""The dashboards of topics and of consumer groups."""

from tools.dashboards.grafana import Board, Panel, Query, Row, Variable
from tools.dashboards.promql import rate

RATE = "[$__rate_interval]"
TOPIC_TRAFFIC = Row(
    title="Traffic",
    panels=[
        Panel(
            title="Records in",
            queries=[
                Query(
                    rate("kafka_server_brokertopicmetrics_messagesin_total", by="topic"),
                    "{{topic}}",
                )
            ],
            unit="cps",
        ),
        Panel(
            title="Bytes in",
            queries=[
                Query(
                    rate("kafka_server_brokertopicmetrics_bytesin_total", by="topic"),
                    "{{topic}}",
                )
            ],
            unit="Bps",
        ),
        Panel(
            title="Bytes out",
            queries=[
                Query(
                    rate("kafka_server_brokertopicmetrics_bytesout_total", by="topic"),
                    "{{topic}}",
                )
            ],
            unit="Bps",
        ),
        Panel(
            title="Requests",
            queries=[
                Query(
                    rate("kafka_server_brokertopicmetrics_totalproducerequests_total"),
                    "produce",
                ),
                Query(
                    rate("kafka_server_brokertopicmetrics_totalfetchrequests_total"),
                    "fetch",
                ),
            ],
            unit="reqps",
        ),
        Panel(
            title="Failed requests",
            queries=[
                Query(
                    rate("kafka_server_brokertopicmetrics_failedproducerequests_total"),
                    "produce",
                ),
                Query(
                    rate("kafka_server_brokertopicmetrics_failedfetchrequests_total"),
                    "fetch",
                ),
            ],
            unit="reqps",
        ),
        Panel(
            title="Bytes a record",
            queries=[
                Query(
                    "sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesin_total{@}[5m])) / "
                    "sum by (topic) "
                    "(rate(kafka_server_brokertopicmetrics_messagesin_total{@}[5m]))",
                    "{{topic}}",
                )
            ],
            unit="bytes",
            about="As they arrive: batches, usually compressed.",
        ),
    ],
)
TOPIC_LOG = Row(
    title="Log",
    panels=[
        Panel(
            title="Size, all replicas",
            queries=[Query("sum by (topic) (kafka_log_log_size{@})", "{{topic}}")],
            unit="bytes",
        ),
        Panel(
            title="Records stored",
            queries=[
                Query(
                    "sum by (topic) (kafka_topic_partition_current_offset{@} "
                    "- kafka_topic_partition_oldest_offset{@})",
                    "{{topic}}",
                )
            ],
            about="End less start offsets; compaction and transactions make it an upper bound.",
        ),
        Panel(
            title="Largest partitions",
            queries=[
                Query(
                    "topk(10, max by (topic, partition) (kafka_log_log_size{@}))",
                    "{{topic}}-{{partition}}",
                )
            ],
            unit="bytes",
            about="A partition far larger than the others means that few keys have most records.",
        ),
        Panel(
            title="Busiest partitions",
            queries=[
                Query(
                    "topk(10, sum by (topic, partition) (rate("
                    "kafka_topic_partition_current_offset{@}[5m])))",
                    "{{topic}}-{{partition}}",
                )
            ],
            unit="cps",
        ),
        Panel(
            title="Segments",
            queries=[Query("sum by (topic) (kafka_log_log_numlogsegments{@})", "{{topic}}")],
        ),
        Panel(
            title="Records after the last stable offset",
            queries=[
                Query(
                    "topk(10, max by (topic, partition) "
                    "(kafka_cluster_partition_laststableoffsetlag{@}))",
                    "{{topic}}-{{partition}}",
                )
            ],
            about="read_committed consumers wait for the end of the open transaction before these.",
        ),
    ],
)
TOPIC_REPLICAS = Row(
    title="Replicas",
    panels=[
        Panel(
            title="Under-replicated partitions",
            queries=[
                Query("sum by (topic) (kafka_cluster_partition_underreplicated{@})", "{{topic}}")
            ],
            is_bad_from=1,
        ),
        Panel(
            title="Partitions under min ISR",
            queries=[Query("sum by (topic) (kafka_cluster_partition_underminisr{@})", "{{topic}}")],
            is_bad_from=1,
        ),
        Panel(
            title="Partitions",
            queries=[
                Query("kafka_topic_partitions{@}", "partitions"),
                Query(
                    "min by (topic) (kafka_topic_partition_in_sync_replica{@})", "fewest in sync"
                ),
            ],
            kind="table",
        ),
    ],
)
TOPIC_GROUPS = Row(
    title="Groups that read it",
    panels=[
        Panel(
            title="Lag in records",
            queries=[
                Query(
                    "sum by (consumergroup, topic) (kafka_consumergroup_lag_sum{@})",
                    "{{consumergroup}} {{topic}}",
                )
            ],
            width=12,
        ),
        Panel(
            title="Lag in time",
            queries=[
                Query(
                    "max by (group, topic) (kafka_consumergroup_group_lag_seconds{@})",
                    "{{group}} {{topic}}",
                )
            ],
            unit="s",
            width=12,
            is_bad_from=300,
        ),
    ],
)
TOPIC = Board(
    name="topic",
    title="Topic",
    about="Traffic, log, replicas and groups of one topic or several.",
    matchers='cluster="$cluster", topic=~"$topic", topic!=""',
    variables=[
        Variable(
            name="topic",
            title="Topic",
            metric="kafka_topic_partitions{@}",
            label="topic",
            takes_several=True,
        )
    ],
    rows=[TOPIC_TRAFFIC, TOPIC_LOG, TOPIC_REPLICAS, TOPIC_GROUPS],
)

GROUP_LAG = Row(
    title="Lag",
    panels=[
        Panel(
            title="In time",
            queries=[
                Query(
                    "kafka_consumergroup_group_max_lag_seconds"
                    '{cluster="$cluster", group=~"$group"}',
                    "{{group}}",
                )
            ],
            unit="s",
            is_bad_from=300,
            about="The age of the oldest record that the group has not read.",
        ),
        Panel(
            title="In records, by topic",
            queries=[
                Query(
                    "sum by (consumergroup, topic) (kafka_consumergroup_lag_sum{@})",
                    "{{consumergroup}} {{topic}}",
                )
            ],
        ),
        Panel(
            title="No lag in",
            queries=[
                Query(
                    'barnabas_group_eta_seconds{cluster="$cluster", group=~"$group"} < +Inf',
                    "{{group}}",
                )
            ],
            unit="s",
            about="At the present speeds; no line while the lag does not shrink.",
        ),
        Panel(
            title="Worst partitions",
            queries=[
                Query(
                    "topk(10, max by (group, topic, partition) ("
                    "kafka_consumergroup_group_lag_seconds"
                    '{cluster="$cluster", group=~"$group"}))',
                    "{{group}} {{topic}}-{{partition}}",
                )
            ],
            unit="s",
        ),
        Panel(
            title="Until retention deletes unread records",
            queries=[
                Query(
                    "min by (group) (barnabas_group_retention_margin_seconds"
                    '{cluster="$cluster", group=~"$group"})',
                    "{{group}}",
                )
            ],
            unit="s",
            is_bad_below=3600,
        ),
        Panel(
            title="Records lost",
            queries=[
                Query(
                    "increase(barnabas_group_records_lost_total"
                    '{cluster="$cluster", group=~"$group"}[1h])',
                    "{{group}}",
                )
            ],
            is_bad_from=1,
            about="Deleted before the group read them, within the hour.",
        ),
    ],
)
GROUP_WORK = Row(
    title="Work",
    panels=[
        Panel(
            title="Read and written",
            queries=[
                Query(
                    "sum by (consumergroup) (rate(kafka_consumergroup_current_offset_sum{@}[5m]))",
                    "{{consumergroup}} reads",
                ),
                Query(
                    "sum by (consumergroup) ("
                    "rate(kafka_topic_partition_current_offset"
                    '{cluster="$cluster"}[5m]) * on (topic, partition) group_right () '
                    "(kafka_consumergroup_current_offset{@} >= bool 0))",
                    "{{consumergroup}} written for it",
                ),
            ],
            unit="cps",
        ),
        Panel(
            title="Members",
            queries=[Query("kafka_consumergroup_members{@}", "{{consumergroup}}")],
        ),
        Panel(
            title="Status",
            queries=[
                Query(
                    'barnabas_group_status{cluster="$cluster", group=~"$group"} == 1',
                    "{{group}} {{status}}",
                )
            ],
            about="ok, behind, stalled, stopped or rewound, by the last ten samples.",
        ),
        Panel(
            title="Rebalances of all groups, by coordinator",
            queries=[
                Query(
                    "sum by (instance) (increase(kafka_coordinator_group_rebalances_total"
                    '{cluster="$cluster"}[10m]))',
                    "{{instance}}",
                )
            ],
            about="Within ten minutes.",
        ),
        Panel(
            title="Commits of all groups, by coordinator",
            queries=[
                Query(
                    "sum by (instance) (rate(kafka_coordinator_group_offsetcommits_total"
                    '{cluster="$cluster"}' + RATE + "))",
                    "{{instance}}",
                )
            ],
            unit="cps",
        ),
        Panel(
            title="Groups, by state",
            queries=[
                Query(
                    f"sum(kafka_coordinator_group_groupmetadatamanager_numgroups{state}"
                    '{cluster="$cluster"})',
                    name,
                )
                for state, name in (
                    ("stable", "stable"),
                    ("preparingrebalance", "preparing a rebalance"),
                    ("completingrebalance", "completing a rebalance"),
                    ("empty", "empty"),
                    ("dead", "dead"),
                )
            ],
            is_stacked=True,
        ),
    ],
)
GROUP = Board(
    name="group",
    title="Group",
    about="Lag in time and in records, speed and members of one group or several.",
    matchers='cluster="$cluster", consumergroup=~"$group"',
    variables=[
        Variable(
            name="group",
            title="Group",
            metric="kafka_consumergroup_members{@}",
            label="consumergroup",
            takes_several=True,
        )
    ],
    rows=[GROUP_LAG, GROUP_WORK],
)
