"""The metrics that rules and dashboards may name, and the metrics that an expression names."""

import re

from barnabas.server.metrics.metric_families import FAMILIES, HISTOGRAM
from barnabas.telemetry.collect.vitals import Vitals
from barnabas.telemetry.samples.metrics import METRICS

TEXT = re.compile(r"\"[^\"]*\"|'[^']*'")
MATCHERS = re.compile(r"\{[^}]*\}")
LABELS = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
RANGE = re.compile(r"\[[^]]*\]|\boffset\s+\w+")
NAME = re.compile(r"(?<![\w:])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])")
KEYWORDS = {"and", "or", "unless", "bool", "Inf"}
PROMETHEUS = {"up", "ALERTS"}
"""Of Prometheus itself."""

EXPORTER = """
kafka_brokers kafka_broker_info kafka_topic_partitions barnabas_cluster_verdict
kafka_topic_partition_{current_offset,oldest_offset,in_sync_replica,leader,leader_is_preferred}
kafka_topic_partition_{replicas,under_replicated_partition}
kafka_consumergroup_{current_offset,lag,current_offset_sum,lag_sum,members}
kafka_consumergroup_{group_lag_seconds,group_max_lag_seconds}
barnabas_group_{eta_seconds,retention_margin_seconds,records_lost_total,status}
barnabas_end_to_end_seconds{_bucket,_sum,_count}
barnabas_stream_{state,lag,rows_per_second,input_per_second,batch_seconds,restarts_total}
barnabas_stream_{state_rows,state_bytes,updated_timestamp_seconds}
kafka_client_producer_{record_queue_time_max,node_request_latency_max,produce_throttle_time_max}
kafka_client_consumer_{fetch_manager_fetch_latency_max,coordinator_rebalance_latency_max}
kafka_client_consumer_poll_idle_ratio_avg
"""
"""What `barnabas exporter` serves; its tests compare their pages with this."""


def names_in(expr: str) -> set[str]:
    """Return the metrics that a PromQL expression names."""
    text = TEXT.sub('""', expr)
    for pattern in (MATCHERS, RANGE, LABELS):
        text = pattern.sub(" ", text)
    return {name for name in NAME.findall(text) if name not in KEYWORDS}


def unknown_names(expr: str) -> set[str]:
    """Return the metrics of an expression that neither broker nor exporter nor collector serves."""
    return names_in(expr) - KNOWN


def _expanded(text: str) -> set[str]:
    found = set()
    for word in text.split():
        head, brace, rest = word.partition("{")
        inner, _, tail = rest.partition("}")
        found |= {head + each + tail for each in inner.split(",")} if brace else {word}
    return found


def _of_collector() -> set[str]:
    page = Vitals().page()
    return {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}


def _of_cards() -> set[str]:
    return {each.dcgm for each in METRICS}


def _of_brokers() -> set[str]:
    found = set()
    for each in FAMILIES:
        suffixes = ("_bucket", "_sum", "_count") if each.kind == HISTOGRAM else ("",)
        found |= {each.name + suffix for suffix in suffixes}
    return found


KNOWN = _of_brokers() | _expanded(EXPORTER) | PROMETHEUS | _of_collector() | _of_cards()
