"""The dashboard of clients: their versions, rates, throttling and errors."""

from tools.dashboards.grafana import Board, Panel, Query, Row
from tools.dashboards.promql import quantiles, rate, topk

RATE = "[$__rate_interval]"
CONNECTIONS = Row(
    title="Connections",
    panels=[
        Panel(
            title="Open",
            queries=[
                Query(
                    "sum by (listener) (kafka_server_socket_server_metrics_connection_count{@})",
                    "{{listener}}",
                )
            ],
            is_stacked=True,
        ),
        Panel(
            title="By client library",
            queries=[
                Query(
                    "sum by (clientSoftwareName, clientSoftwareVersion) "
                    "(kafka_server_socket_server_metrics_connections_software{@})",
                    "{{clientSoftwareName}} {{clientSoftwareVersion}}",
                )
            ],
            about="Which clients should be upgraded.",
        ),
        Panel(
            title="Refused",
            queries=[
                Query(
                    rate("barnabas_connections_refused_total", by="reason"),
                    "{{reason}}",
                )
            ],
            unit="cps",
        ),
    ],
)
RATES = Row(
    title="Clients with most bytes",
    panels=[
        Panel(
            title="Produced, by client id",
            queries=[
                Query(
                    "topk(10, sum by (client_id) (kafka_server_produce_byte_rate{@}))",
                    "{{client_id}}",
                )
            ],
            unit="Bps",
        ),
        Panel(
            title="Fetched, by client id",
            queries=[
                Query(
                    "topk(10, sum by (client_id) (kafka_server_fetch_byte_rate{@}))",
                    "{{client_id}}",
                )
            ],
            unit="Bps",
        ),
        Panel(
            title="Throttled by quotas",
            queries=[
                Query(
                    "topk(10, max by (client_id) (kafka_server_produce_throttle_time{@}))",
                    "{{client_id}} produce",
                ),
                Query(
                    "topk(10, max by (client_id) (kafka_server_fetch_throttle_time{@}))",
                    "{{client_id}} fetch",
                ),
            ],
            unit="ms",
            about="How long answers are held back.",
        ),
    ],
)
PRODUCERS = Row(
    title="Producers",
    panels=[
        Panel(
            title="Requests that failed",
            queries=[
                Query(
                    "sum(rate(kafka_server_brokertopicmetrics_failedproducerequests_total"
                    '{@, topic=""}' + RATE + ")) / "
                    "sum(rate(kafka_server_brokertopicmetrics_totalproducerequests_total"
                    '{@, topic=""}' + RATE + "))",
                    "failed",
                )
            ],
            unit="percentunit",
            is_bad_from=0.01,
        ),
        Panel(
            title="Latency of Produce",
            queries=quantiles("barnabas_request_seconds", 'request="Produce"', count=2),
            unit="s",
            is_bad_from=0.1,
        ),
        Panel(
            title="Records a request",
            queries=[
                Query(
                    "sum(rate(kafka_server_brokertopicmetrics_messagesin_total"
                    '{@, topic=""}[5m])) / '
                    "sum(rate(kafka_server_brokertopicmetrics_totalproducerequests_total"
                    '{@, topic=""}[5m]))',
                    "records",
                )
            ],
            about="Few records a request cost the broker and the client most: raise linger.ms.",
        ),
    ],
)
CONSUMERS = Row(
    title="Consumers",
    panels=[
        Panel(
            title="Requests that failed",
            queries=[
                Query(
                    "sum(rate(kafka_server_brokertopicmetrics_failedfetchrequests_total"
                    '{@, topic=""}' + RATE + ")) / "
                    "sum(rate(kafka_server_brokertopicmetrics_totalfetchrequests_total"
                    '{@, topic=""}' + RATE + "))",
                    "failed",
                )
            ],
            unit="percentunit",
            is_bad_from=0.01,
        ),
        Panel(
            title="Latency of Fetch",
            queries=quantiles("barnabas_request_seconds", 'request="FetchConsumer"', count=2),
            unit="s",
            about="Without the time for which a consumer asked to wait.",
        ),
        Panel(
            title="Records read by groups",
            queries=[
                Query(
                    "topk(10, sum by (consumergroup) (rate("
                    "kafka_consumergroup_current_offset_sum{@}[5m])))",
                    "{{consumergroup}}",
                )
            ],
            unit="cps",
        ),
    ],
)
ERRORS = Row(
    title="Answers",
    panels=[
        Panel(
            title="Errors",
            queries=[
                Query(
                    topk(
                        10,
                        rate(
                            "kafka_network_requestmetrics_errors_total",
                            'error!="NONE"',
                            by="request, error",
                        ),
                    ),
                    "{{request}} {{error}}",
                )
            ],
            unit="reqps",
            width=12,
        ),
        Panel(
            title="Requests, by version",
            queries=[
                Query(
                    topk(
                        15,
                        rate("kafka_network_requestmetrics_requests_total", by="request, version"),
                    ),
                    "{{request}} v{{version}}",
                )
            ],
            unit="reqps",
            width=12,
        ),
    ],
)
PUSHED = Row(
    title="Pushed by clients themselves (KIP-714), largest value of a client id",
    panels=[
        Panel(
            title=title,
            queries=[Query(f"topk(10, max by (client_id) ({name}{{@}}))", "{{client_id}}")],
            unit=unit,
        )
        for title, name, unit in (
            ("Producer: time in its queue", "kafka_client_producer_record_queue_time_max", "ms"),
            (
                "Producer: latency of requests",
                "kafka_client_producer_node_request_latency_max",
                "ms",
            ),
            ("Producer: throttled for", "kafka_client_producer_produce_throttle_time_max", "ms"),
            (
                "Consumer: latency of fetches",
                "kafka_client_consumer_fetch_manager_fetch_latency_max",
                "ms",
            ),
            (
                "Consumer: duration of rebalances",
                "kafka_client_consumer_coordinator_rebalance_latency_max",
                "ms",
            ),
            ("Consumer: idle share", "kafka_client_consumer_poll_idle_ratio_avg", "percentunit"),
        )
    ],
)
CLIENT = Board(
    name="client",
    title="Clients",
    about="Connections, rates, throttling and errors of producers and consumers.",
    rows=[CONNECTIONS, RATES, PRODUCERS, CONSUMERS, PUSHED, ERRORS],
)
