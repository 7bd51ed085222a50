"""The dashboard of brokers: resources, requests, disk, connections."""

from tools.dashboards.grafana import Board, Panel, Query, Row, Variable
from tools.dashboards.promql import quantile, rate, topk

RATE = "[$__rate_interval]"
RESOURCES = Row(
    title="Resources",
    panels=[
        Panel(
            title="CPU",
            queries=[Query("rate(process_cpu_seconds_total{@}" + RATE + ")", "{{instance}}")],
            unit="percentunit",
            about="1 is a whole core. The event loop uses at most one; other threads more.",
        ),
        Panel(
            title="Memory",
            queries=[Query("process_resident_memory_bytes{@}", "{{instance}}")],
            unit="bytes",
        ),
        Panel(
            title="Event loop idle",
            queries=[
                Query(
                    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{@}",
                    "{{instance}}",
                )
            ],
            unit="percentunit",
            maximum=1,
            is_bad_below=0.1,
            about="Below 10 % latencies grow: spread the load over more brokers.",
        ),
        Panel(
            title="Stalls of the event loop",
            queries=[Query("increase(barnabas_loop_stalls_total{@}[5m])", "{{instance}}")],
            about="Turns over 100 ms within five minutes. All clients wait meanwhile.",
        ),
        Panel(
            title="Longest stall",
            queries=[Query("barnabas_loop_stall_seconds_max{@}", "{{instance}}")],
            unit="s",
        ),
        Panel(
            title="Open files",
            queries=[Query("process_open_fds{@} / process_max_fds{@}", "{{instance}}")],
            unit="percentunit",
            maximum=1,
            is_bad_from=0.8,
        ),
    ],
)
REQUESTS = Row(
    title="Requests",
    panels=[
        Panel(
            title="99 % within, by API",
            queries=[
                Query(
                    "topk(10, histogram_quantile(0.99, sum by (request, le) (rate("
                    "barnabas_request_seconds_bucket{@}" + RATE + "))))",
                    "{{request}}",
                )
            ],
            unit="s",
        ),
        Panel(
            title="Requests, by API",
            queries=[
                Query(
                    topk(10, rate("kafka_network_requestmetrics_requests_total", by="request")),
                    "{{request}}",
                )
            ],
            unit="reqps",
        ),
        Panel(
            title="Answers with errors",
            queries=[
                Query(
                    topk(
                        10,
                        rate(
                            "kafka_network_requestmetrics_errors_total", 'error!="NONE"', by="error"
                        ),
                    ),
                    "{{error}}",
                )
            ],
            unit="reqps",
            about="Some errors are normal: NOT_LEADER_OR_FOLLOWER after an election, "
            "REBALANCE_IN_PROGRESS in a rebalance.",
        ),
        Panel(
            title="Requests that wait",
            queries=[
                Query(
                    "sum by (delayedOperation) "
                    "(kafka_server_delayedoperationpurgatory_purgatorysize{@})",
                    "{{delayedOperation}}",
                )
            ],
            about="Fetches that wait for records, writes that wait for replicas, joins that wait.",
        ),
        Panel(
            title="Fetch sessions",
            queries=[
                Query(
                    "kafka_server_fetchsessioncache_numincrementalfetchsessions{@}", "{{instance}}"
                )
            ],
        ),
        Panel(
            title="Refused bytes",
            queries=[
                Query(
                    "rate(kafka_server_brokertopicmetrics_bytesrejected_total{@}" + RATE + ")",
                    "{{instance}}",
                )
            ],
            unit="Bps",
            about="Batches that were too large.",
        ),
    ],
)
NETWORK = Row(
    title="Network and connections",
    panels=[
        Panel(
            title="Bytes in",
            queries=[
                Query(
                    rate("kafka_server_brokertopicmetrics_bytesin_total", 'topic=""'),
                    "producers",
                ),
                Query(
                    rate("kafka_server_brokertopicmetrics_replicationbytesin_total"),
                    "replication",
                ),
                Query(
                    rate("kafka_server_raftchannelmetrics_incoming_byte_total"),
                    "quorum",
                ),
            ],
            unit="Bps",
            is_stacked=True,
        ),
        Panel(
            title="Bytes out",
            queries=[
                Query(
                    rate("kafka_server_brokertopicmetrics_bytesout_total", 'topic=""'),
                    "consumers",
                ),
                Query(
                    rate("kafka_server_brokertopicmetrics_replicationbytesout_total"),
                    "replication",
                ),
                Query(
                    rate("kafka_server_raftchannelmetrics_outgoing_byte_total"),
                    "quorum",
                ),
            ],
            unit="Bps",
            is_stacked=True,
        ),
        Panel(
            title="Connections, by listener",
            queries=[
                Query(
                    "sum by (instance, listener) "
                    "(kafka_server_socket_server_metrics_connection_count{@})",
                    "{{instance}} {{listener}}",
                )
            ],
        ),
        Panel(
            title="Connections of the limit",
            queries=[
                Query(
                    "sum by (instance) (kafka_server_socket_server_metrics_connection_count{@}) "
                    "/ on (instance) max by (instance) (barnabas_connections_limit{@})",
                    "{{instance}}",
                )
            ],
            unit="percentunit",
            maximum=1,
            is_bad_from=0.8,
        ),
        Panel(
            title="Refused connections",
            queries=[
                Query(
                    rate("barnabas_connections_refused_total", by="reason"),
                    "{{reason}}",
                )
            ],
            unit="cps",
        ),
        Panel(
            title="Versions",
            queries=[Query("barnabas_build_info{@}", "brokers")],
            kind="table",
        ),
    ],
)
DISK = Row(
    title="Disk",
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
            title="Reads and writes",
            queries=[
                Query(
                    "rate(kafka_server_kafkaserver_linux_disk_read_bytes{@}" + RATE + ")",
                    "{{instance}} read",
                ),
                Query(
                    "rate(kafka_server_kafkaserver_linux_disk_write_bytes{@}" + RATE + ")",
                    "{{instance}} written",
                ),
            ],
            unit="Bps",
        ),
        Panel(
            title="Fsyncs",
            queries=[
                Query(
                    quantile(0.5, "barnabas_sync_seconds", by="instance"),
                    "{{instance}} median",
                ),
                Query(
                    quantile(0.99, "barnabas_sync_seconds", by="instance"),
                    "{{instance}} 99 %",
                ),
            ],
            unit="s",
            is_bad_from=0.1,
        ),
        Panel(
            title="Fsyncs a second",
            queries=[
                Query(
                    "rate(kafka_log_logflushstats_logflushrateandtimems_count{@}" + RATE + ")",
                    "{{instance}}",
                )
            ],
            unit="cps",
        ),
        Panel(
            title="Errors of the disk, damaged replicas",
            queries=[
                Query("increase(barnabas_storage_errors_total{@}[5m])", "{{instance}} errors"),
                Query("barnabas_damaged_partitions{@}", "{{instance}} damaged"),
                Query("kafka_log_logmanager_offlinelogdirectorycount{@}", "{{instance}} offline"),
            ],
            is_bad_from=1,
        ),
        Panel(
            title="Checked in the background",
            queries=[
                Query("rate(barnabas_scrubbed_bytes_total{@}" + RATE + ")", "{{instance}}"),
            ],
            unit="Bps",
            about="Stored records whose checksums the broker has checked again.",
        ),
    ],
)
PARTITIONS = Row(
    title="Partitions and replication",
    panels=[
        Panel(
            title="Replicas and leaders",
            queries=[
                Query("kafka_server_replicamanager_partitioncount{@}", "{{instance}} replicas"),
                Query("kafka_server_replicamanager_leadercount{@}", "{{instance}} leaders"),
            ],
        ),
        Panel(
            title="Under-replicated, at and under min ISR",
            queries=[
                Query(
                    "kafka_server_replicamanager_underreplicatedpartitions{@}",
                    "{{instance}} under-replicated",
                ),
                Query(
                    "kafka_server_replicamanager_atminisrpartitioncount{@}", "{{instance}} at min"
                ),
                Query(
                    "kafka_server_replicamanager_underminisrpartitioncount{@}",
                    "{{instance}} under min",
                ),
            ],
        ),
        Panel(
            title="Records behind, worst replica here",
            queries=[
                Query(
                    'kafka_server_replicafetchermanager_maxlag{@, clientId="Replica"}',
                    "{{instance}}",
                )
            ],
        ),
        Panel(
            title="ISR changes that failed",
            queries=[
                Query(
                    "increase(kafka_server_replicamanager_failedisrupdates_total{@}[5m])",
                    "{{instance}}",
                )
            ],
        ),
        Panel(
            title="State",
            queries=[Query("kafka_server_kafkaserver_brokerstate{@}", "{{instance}}")],
            about="1 starts, 2 recovers its logs, 3 runs, 6 and 7 stops.",
        ),
        Panel(
            title="Quorum epoch",
            queries=[Query("kafka_server_raftmetrics_current_epoch{@}", "{{instance}}")],
            about="Each election raises it.",
        ),
    ],
)
BROKER = Board(
    name="broker",
    title="Broker",
    about="Resources, requests, network, disk and partitions of one broker or several.",
    matchers='cluster="$cluster", job="barnabas", instance=~"$broker"',
    variables=[
        Variable(
            name="broker",
            title="Broker",
            metric='up{job="barnabas", @}',
            label="instance",
            takes_several=True,
        )
    ],
    rows=[RESOURCES, REQUESTS, NETWORK, DISK, PARTITIONS],
)
