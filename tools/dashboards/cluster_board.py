"""The dashboard of a whole cluster: its health, its load and how fast it answers."""

from tools.dashboards.grafana import Board, Panel, Query, Row
from tools.dashboards.promql import quantile, quantiles, rate, topk

NOW = Row(
    title="Now",
    panels=[
        Panel(
            title="Brokers up",
            queries=[Query('sum(up{job="barnabas", @})')],
            kind="stat",
            width=3,
            height=4,
            about="Brokers whose metrics Prometheus can read.",
        ),
        Panel(
            title="Active controllers",
            queries=[Query("sum(kafka_controller_kafkacontroller_activecontrollercount{@})")],
            kind="stat",
            width=3,
            height=4,
            is_bad_below=1,
            about="Always 1. With 0 no metadata can change.",
        ),
        Panel(
            title="Offline partitions",
            queries=[Query("max(kafka_controller_kafkacontroller_offlinepartitionscount{@})")],
            kind="stat",
            width=3,
            height=4,
            is_bad_from=1,
            about="Partitions without a leader: clients can neither read nor write them.",
        ),
        Panel(
            title="Under min ISR",
            queries=[Query("sum(kafka_server_replicamanager_underminisrpartitioncount{@})")],
            kind="stat",
            width=3,
            height=4,
            is_bad_from=1,
            about="Partitions that reject writes with acks=all.",
        ),
        Panel(
            title="Under-replicated",
            queries=[Query("sum(kafka_server_replicamanager_underreplicatedpartitions{@})")],
            kind="stat",
            width=3,
            height=4,
            is_bad_from=1,
            about="Partitions with replicas out of sync. Normal during a restart or a move.",
        ),
        Panel(
            title="Least free disk",
            queries=[Query("min(barnabas_disk_free_bytes{@} / barnabas_disk_total_bytes{@})")],
            unit="percentunit",
            kind="stat",
            width=3,
            height=4,
            is_bad_below=0.2,
        ),
        Panel(
            title="Worst group",
            queries=[Query("max(kafka_consumergroup_group_max_lag_seconds{@})")],
            unit="s",
            kind="stat",
            width=3,
            height=4,
            is_bad_from=300,
            about="The age of the oldest record that some group has not read.",
        ),
        Panel(
            title="Alerts firing",
            queries=[Query('count(ALERTS{alertstate="firing", @}) or vector(0)')],
            kind="stat",
            width=3,
            height=4,
            is_bad_from=1,
        ),
    ],
)
THROUGHPUT = Row(
    title="Throughput",
    panels=[
        Panel(
            title="Records in, by broker",
            queries=[
                Query(
                    rate(
                        "kafka_server_brokertopicmetrics_messagesin_total",
                        'topic=""',
                        by="instance",
                    ),
                    "{{instance}}",
                )
            ],
            unit="cps",
            is_stacked=True,
        ),
        Panel(
            title="Bytes in, by broker",
            queries=[
                Query(
                    rate(
                        "kafka_server_brokertopicmetrics_bytesin_total", 'topic=""', by="instance"
                    ),
                    "{{instance}}",
                )
            ],
            unit="Bps",
            is_stacked=True,
            about="From producers, without replication.",
        ),
        Panel(
            title="Bytes out, by broker",
            queries=[
                Query(
                    rate(
                        "kafka_server_brokertopicmetrics_bytesout_total", 'topic=""', by="instance"
                    ),
                    "{{instance}}",
                )
            ],
            unit="Bps",
            is_stacked=True,
            about="To consumers, without replication.",
        ),
        Panel(
            title="Replication",
            queries=[
                Query(
                    rate("kafka_server_brokertopicmetrics_replicationbytesin_total"),
                    "in",
                ),
                Query(
                    rate("kafka_server_brokertopicmetrics_replicationbytesout_total"),
                    "out",
                ),
            ],
            unit="Bps",
        ),
        Panel(
            title="Requests",
            queries=[
                Query(
                    topk(8, rate("kafka_network_requestmetrics_requests_total", by="request")),
                    "{{request}}",
                )
            ],
            unit="reqps",
        ),
        Panel(
            title="Failed requests",
            queries=[
                Query(
                    rate("kafka_server_brokertopicmetrics_failedproducerequests_total", 'topic=""'),
                    "produce",
                ),
                Query(
                    rate("kafka_server_brokertopicmetrics_failedfetchrequests_total", 'topic=""'),
                    "fetch",
                ),
            ],
            unit="cps",
            about="Failed partitions in requests. Elections cause some; a lasting rate is a fault.",
        ),
    ],
)
LATENCY = Row(
    title="Latency",
    panels=[
        Panel(
            title="Produce",
            queries=quantiles("barnabas_request_seconds", 'request="Produce"'),
            unit="s",
            is_bad_from=0.1,
            about="With acks=all it includes the fsync and the replicas.",
        ),
        Panel(
            title="Fetch by consumers",
            queries=quantiles("barnabas_request_seconds", 'request="FetchConsumer"'),
            unit="s",
            is_bad_from=0.1,
            about="Without the time for which a consumer asked to wait.",
        ),
        Panel(
            title="End to end",
            queries=[
                Query(
                    f"histogram_quantile({quantile}, sum by (le) (rate("
                    "barnabas_end_to_end_seconds_bucket{@}[5m])))",
                    name,
                )
                for quantile, name in ((0.5, "median"), (0.99, "99 %"))
            ],
            unit="s",
            about="From send to receipt of the probe records of `barnabas exporter --probe-topic`.",
        ),
    ],
)
REPLICATION = Row(
    title="Replication and quorum",
    panels=[
        Panel(
            title="ISR changes",
            queries=[
                Query(
                    "sum(increase(kafka_server_replicamanager_isrshrinks_total{@}[5m]))", "shrinks"
                ),
                Query(
                    "sum(increase(kafka_server_replicamanager_isrexpands_total{@}[5m]))", "expands"
                ),
            ],
            about="Within five minutes. Shrinks without a restart: a slow broker, disk or network.",
        ),
        Panel(
            title="Slowest replica",
            queries=[
                Query("max by (instance) (barnabas_replica_lag_seconds{@})", "led by {{instance}}")
            ],
            unit="s",
            is_bad_from=10,
            about="How far the slowest follower is behind its leader.",
        ),
        Panel(
            title="Metadata log behind the newest",
            queries=[
                Query(
                    "max(kafka_server_raftmetrics_log_end_offset{@}) - on () group_right () "
                    "kafka_server_raftmetrics_log_end_offset{@}",
                    "{{instance}}",
                )
            ],
            is_bad_from=1000,
            about="In records. A voter far behind cannot replace another.",
        ),
        Panel(
            title="Leaders, by broker",
            queries=[Query("kafka_server_replicamanager_leadercount{@}", "{{instance}}")],
            is_stacked=True,
        ),
        Panel(
            title="Fenced brokers, leaders that are not preferred",
            queries=[
                Query("max(kafka_controller_kafkacontroller_fencedbrokercount{@})", "fenced"),
                Query(
                    "max(kafka_controller_kafkacontroller_preferredreplicaimbalancecount{@})",
                    "not preferred",
                ),
            ],
        ),
        Panel(
            title="Partitions that are being moved",
            queries=[Query("sum(kafka_server_replicamanager_reassigningpartitions{@})", "moving")],
        ),
    ],
)
STORAGE = Row(
    title="Disks",
    panels=[
        Panel(
            title="Free",
            queries=[
                Query("barnabas_disk_free_bytes{@} / barnabas_disk_total_bytes{@}", "{{instance}}")
            ],
            unit="percentunit",
            maximum=1,
            is_bad_below=0.2,
        ),
        Panel(
            title="Full in",
            queries=[
                Query(
                    "barnabas_disk_free_bytes{@} / (-deriv(barnabas_disk_free_bytes{@}[6h]) > 0)",
                    "{{instance}}",
                )
            ],
            unit="s",
            about="At the speed of the last six hours; no line where the disk does not fill.",
        ),
        Panel(
            title="99 % of fsyncs within",
            queries=[
                Query(
                    quantile(0.99, "barnabas_sync_seconds", by="instance"),
                    "{{instance}}",
                )
            ],
            unit="s",
            is_bad_from=0.1,
        ),
    ],
)
WORST = Row(
    title="Largest and slowest",
    panels=[
        Panel(
            title="Topics by bytes in",
            queries=[
                Query(
                    topk(
                        10,
                        rate(
                            "kafka_server_brokertopicmetrics_bytesin_total", 'topic!=""', by="topic"
                        ),
                    ),
                    "{{topic}}",
                )
            ],
            unit="Bps",
        ),
        Panel(
            title="Topics by size",
            queries=[Query("topk(10, sum by (topic) (kafka_log_log_size{@}))", "{{topic}}")],
            unit="bytes",
            about="All replicas.",
        ),
        Panel(
            title="Groups by lag in time",
            queries=[
                Query(
                    "topk(10, max by (group) (kafka_consumergroup_group_max_lag_seconds{@}))",
                    "{{group}}",
                )
            ],
            unit="s",
            is_bad_from=300,
        ),
    ],
)
CLUSTER = Board(
    name="cluster",
    title="Cluster",
    about="Health, throughput, latency, replication and disks of a cluster.",
    rows=[NOW, THROUGHPUT, LATENCY, REPLICATION, STORAGE, WORST],
)
