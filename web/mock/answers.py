"""Answers of the made-up console, one function a path.

src/barnabas/console/README.md lists them.
"""

import json
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

from web.mock.cluster import BROKERS, FENCED, MEBI, Cluster, Row

Params = dict[str, str]


class ProblemError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, text: str, code: str = "bad_input") -> None:
        super().__init__(text)
        self.status = status
        self.code = code


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def paged(rows: list[Row], params: Params, name: str = "name") -> Row:
    """Search, sort and cut a list."""
    wanted = params.get("search", "").casefold()
    found = [row for row in rows if wanted in str(row[name]).casefold()]
    sort = params.get("sort", "")
    key = sort.lstrip("-")
    if key:
        known = [row for row in found if row.get(key) is not None]
        known.sort(key=lambda row: _order(row[key]), reverse=sort.startswith("-"))
        found = known + [row for row in found if row.get(key) is None]
    start, limit = int(params.get("offset") or 0), int(params.get("limit") or 100)
    return {"total": len(found), "items": found[start : start + limit], "taken_ms": now_ms()}


def _order(value: Any) -> tuple[int, float, str]:
    if isinstance(value, str):
        return (1, 0.0, value)
    return (0, float(value), "") if not isinstance(value, list) else (0, len(value), "")


class Answers:
    """Reads and changes the made-up cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def overview(self) -> Row:
        cluster = self.cluster
        groups = [cluster.group_row(name) for name in list(cluster.groups)[:60]]
        topics = [cluster.topic_row(name) for name in list(cluster.topics)[:60]]
        statuses = [group["status"] for group in cluster.groups.values()]
        some = bool(topics)
        reasons = ["broker 3 is fenced", "41 partitions are under-replicated"] if some else []
        return {
            "taken_ms": now_ms(),
            "took_ms": 48,
            "interval_s": 10,
            "cluster_id": "kX1TzHpFQ2iSmWcM0q7u3A",
            "controller": 1,
            "feature_level": 2,
            "health": {
                "verdict": "degraded" if some else "healthy",
                "reasons": reasons,
                "warnings": ["one more lost voter stops the cluster"] if some else [],
            },
            "throughput": {
                "records_per_s": 412_233.4,
                "bytes_in_per_s": 182.4e6,
                "bytes_out_per_s": 401.9e6,
                "produce_p99_s": 0.0041,
                "fetch_p99_s": 0.0019,
            },
            "disk": {"used_ratio": 0.86, "full_in_s": 19 * 86_400},
            "counts": {
                "brokers": 3,
                "brokers_up": 2,
                "topics": len(cluster.topics),
                "partitions": 349,
                "groups": len(groups),
                "members": 87,
            },
            "partitions": {
                "offline": 0,
                "under_min_isr": 2,
                "under_replicated": 41,
                "reassigning": 3,
                "not_led_as_preferred": 116,
            },
            "groups_by_status": {
                status: statuses.count(status) for status in sorted(set(statuses))
            },
            "worst_groups": sorted(groups, key=lambda row: -row["lag"])[:8],
            "hottest_topics": sorted(topics, key=lambda row: -row["records_per_s"])[:8],
            "brokers": [cluster.broker_row(broker) for broker in BROKERS],
            "history": cluster.series(
                "records_per_s", "bytes_in_per_s", "bytes_out_per_s", "lag", "produce_p99_s"
            ),
        }

    def topics(self, params: Params) -> Row:
        rows = [
            self.cluster.topic_row(name)
            for name, topic in self.cluster.topics.items()
            if params.get("internal") == "1" or not topic["is_internal"]
        ]
        return paged(rows, params)

    def topic(self, name: str) -> Row:
        self._require(name)
        readers = [
            group
            for group in self.cluster.groups
            if name in self.cluster.groups[group]["topic_names"]
        ]
        rows = [self.cluster.group_row(group) for group in readers[:200]]
        row = self.cluster.topic_row(name)
        return {
            **row,
            "partition_list": self.cluster.partitions(name),
            "group_list": [
                {key: row[key] for key in ("name", "lag", "lag_s", "status")} for row in rows
            ],
            "history": self.cluster.series(
                "records_per_s",
                "bytes_in_per_s",
                known={"records_per_s": row["records_per_s"], "bytes_in_per_s": row["bytes_per_s"]},
            ),
        }

    def _require(self, name: str) -> None:
        if name not in self.cluster.topics:
            raise ProblemError(
                404, f"There is no topic {name}. Create it: barnabas topic create NAME", "not_found"
            )

    def topic_configs(self, name: str) -> Row:
        self._require(name)
        return {"items": configs()}

    def groups(self, params: Params) -> Row:
        status = params.get("status", "")
        names = [
            name for name, group in self.cluster.groups.items() if status in ("", group["status"])
        ]
        return paged([self.cluster.group_row(name) for name in names], params)

    def group(self, name: str) -> Row:
        if name not in self.cluster.groups:
            raise ProblemError(404, f"There is no group {name}", "not_found")
        row = self.cluster.group_row(name)
        places = [
            (topic, each["number"], each["end"])
            for topic in self.cluster.groups[name]["topic_names"]
            if topic in self.cluster.topics
            for each in self.cluster.partitions(topic)
        ]
        return {
            **row,
            "coordinator": 2,
            "assignor": "uniform" if row["type"] == "consumer" else "range",
            "member_list": members(name, row["members"], places),
            "partition_list": [
                self._group_partition(row, at, place, len(places))
                for at, place in enumerate(places)
            ],
            "history": self.cluster.series("lag", "lag_s", known=row),
        }

    def _group_partition(self, row: Row, at: int, place: tuple[str, int, int], of: int) -> Row:
        topic, number, end = place
        lag = int(row["lag"] / of * (0.5 + (at * 29 % 10) / 10))
        owner = at % row["members"] if row["members"] else None
        return {
            "topic": topic,
            "partition": number,
            "committed": None if at == 11 else max(0, end - lag),
            "end": end,
            "lag": None if at == 11 else lag,
            "lag_s": None if at == 11 else round(row["lag_s"] * (0.5 + (at * 29 % 10) / 10), 1),
            "read_per_s": row["read_per_s"] / of,
            "retention_margin_s": row["retention_margin_s"],
            "lost_records": 1_204 if row["status"] == "stopped" and at == 2 else 0,
            "status": "unknown" if at == 11 else row["status"],
            "member_id": None if owner is None else f"{row['name']}-{owner}-5f0c2d",
            "client_id": None if owner is None else f"{row['name']}-{owner}",
        }

    def brokers(self, params: Params) -> Row:
        return paged([self.cluster.broker_row(broker) for broker in BROKERS], params, "address")

    def broker(self, name: str) -> Row:
        if name not in {str(broker) for broker in BROKERS}:
            raise ProblemError(
                404, f"There is no broker {name[:40]}; the cluster has 1, 2, 3", "not_found"
            )
        row = self.cluster.broker_row(int(name))
        is_up = row["state"] == "up"
        return {
            **row,
            "partitions": {"leaders": row["leaders"], "replicas": 349, "under_replicated": 41},
            "quorum": {
                "role": "leader" if name == "1" else "voter",
                "lag": 0 if is_up else 1_302,
                "last_contact_ms": 0 if is_up else 131_000,
            },
            "slow_requests": slow_requests() if is_up else None,
            "restart_safe": {
                "safe": False,
                "reasons": ["2 partitions would fall below min ISR: orders-1, payments-4"],
            },
            "configs": configs(),
            "history": self.cluster.series(
                "records_per_s", "bytes_in_per_s", "bytes_out_per_s", known=row
            ),
        }

    def heatmap(self, params: Params) -> Row:
        names = list(self.cluster.topics)[:40]
        column = {"size": "size_bytes", "records": "records_per_s"}.get(params.get("by", "size"))
        cells = []
        for at, name in enumerate(names):
            for each in self.cluster.partitions(name):
                value = each[column] if column else (each["number"] * 9_731) % 20_000
                cells += [
                    [at, BROKERS.index(broker), each["number"], value, broker == each["leader"]]
                    for broker in each["replicas"]
                ]
        cells.sort(key=lambda cell: -cell[3])
        return {"topics": names, "brokers": list(BROKERS), "cells": cells[:5000]}

    def quorum(self) -> Row:
        def voter(broker: int) -> Row:
            is_up = broker != FENCED
            return {
                "id": broker,
                "lag": 0 if is_up else 1_302,
                "last_contact_ms": 12 if is_up else 131_000,
            }

        return {
            "leader": 1,
            "epoch": 41,
            "voters": [voter(broker) for broker in BROKERS],
            "observers": [],
        }

    def transactions(self, params: Params) -> Row:
        rows = [
            {
                "transactional_id": f"ledger-{at}",
                "producer_id": 4_000 + at,
                "state": "Ongoing",
                "topics": ["ledger", "payments"],
                "since_ms": now_ms() - (1_240_000 if at == 2 else 900 * at),
                "hanging": at == 2,
            }
            for at in range(5)
        ]
        return paged(rows, params, "transactional_id")

    def streams(self, params: Params) -> Row:
        return paged([stream(at) for at in range(4)], params)

    def stream(self, name: str) -> Row:
        found = next((row for row in map(stream, range(4)) if row["name"] == name), None)
        if found is None:
            raise ProblemError(404, f"No query {name} has reported", "not_found")
        return {
            **found,
            "history": self.cluster.series("rows_per_s", "batch_ms", "lag", "state_bytes"),
        }

    def telemetry(self) -> Row:
        return {
            "lake": "/data/lake",
            "updated_ms": now_ms() - 41_000,
            "summary": {"gpus": 500, "idle_hours": 2.97, "waste": 7.5, "currency": "USD"},
            "findings": [{"kind": "xid"}] * 39,
        }

    def alerts(self) -> Row:
        if not self.cluster.topics:
            return {"items": []}
        firing = [
            (
                "BrokerDown",
                "critical",
                "firing",
                {"broker": "3"},
                "Broker 3 at broker-3.prod.example:9092 is fenced",
                130,
            ),
            ("UnderMinIsr", "critical", "firing", {}, "2 partitions reject acks=all", 125),
            (
                "GroupStopped",
                "warning",
                "firing",
                {"consumergroup": "search-index"},
                "Group search-index has stopped with 224,001 records unread",
                900,
            ),
            (
                "LagTime",
                "warning",
                "pending",
                {"consumergroup": "billing"},
                "Group billing is 4m 12s behind",
                60,
            ),
        ]
        quiet = ["NoController", "OfflinePartitions", "DiskLow", "DiskCritical", "ProduceSlow"]
        items = [
            {
                "name": name,
                "severity": severity,
                "state": state,
                "since_ms": now_ms() - ago * 1000,
                "labels": labels,
                "summary": summary,
                "value": None,
                "runbook": f"docs/operations.md#{name.lower()}",
                "source": "console",
            }
            for name, severity, state, labels, summary, ago in firing
        ]
        ok: Row = {
            "state": "ok",
            "since_ms": None,
            "labels": {},
            "summary": None,
            "value": None,
            "runbook": None,
        }
        return {"items": items + [{**ok, "name": name, "severity": "warning"} for name in quiet]}

    def search(self, params: Params) -> Row:
        text = params.get("q", "").casefold()
        names = [("topic", name) for name in self.cluster.topics] + [
            ("group", name) for name in self.cluster.groups
        ]
        found = [(kind, name) for kind, name in names if text in name.casefold()][:20]
        return {
            "items": [
                {"kind": kind, "name": name, "url": f"/{kind}s/{quote(name)}"}
                for kind, name in found
            ]
        }

    def plan(self, kind: str, body: Row) -> Row:
        if kind == "elect":
            changes = [
                {"topic": "orders", "partition": at, "before": 1, "after": 3} for at in range(4)
            ]
            return {"changes": changes, "elected": [], "refused": []}
        moves = [
            {
                "topic": name,
                "partition": at,
                "before": [3, 1] if at % 3 else [1, 3],
                "after": [2, 1] if at % 3 else [2, 3] if at % 2 else [1, 2],
                "bytes": (at + 1) * 300 * MEBI,
            }
            for name in ("orders", "clicks", "gpu-telemetry")
            for at in range(4)
        ]
        totals = {
            "1": {
                "replicas_before": 230,
                "replicas_after": 236,
                "leaders_before": 178,
                "leaders_after": 118,
            },
            "2": {
                "replicas_before": 221,
                "replicas_after": 227,
                "leaders_before": 171,
                "leaders_after": 116,
            },
            "3": {
                "replicas_before": 247,
                "replicas_after": 235,
                "leaders_before": 0,
                "leaders_after": 115,
            },
        }
        return {
            "changes": moves,
            "moves": len(moves),
            "brokers": totals,
            "bytes_to_move": sum(move["bytes"] for move in moves),
        }

    def running(self) -> Row:
        return {
            "moving": [
                {
                    "topic": "catalog",
                    "partition": at,
                    "adding": [2],
                    "removing": [3],
                    "bytes_left": 812_000_000 // (at + 1),
                }
                for at in range(3)
            ]
        }


def quote(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def members(group: str, count: int, places: list[tuple[str, int, int]]) -> list[Row]:
    return [
        {
            "member_id": f"{group}-{at}-5f0c2d",
            "client_id": f"{group}-{at}",
            "instance_id": f"pod-{at}" if at % 2 else None,
            "host": f"10.0.{at}.17",
            "partitions": [
                {"topic": topic, "partition": number} for topic, number, _ in places[at::count]
            ],
        }
        for at in range(count)
    ]


def configs() -> list[Row]:
    rows = [
        ("retention.ms", "86400000", "604800000", "LONG", "How long records are kept."),
        (
            "cleanup.policy",
            "delete",
            "delete",
            "LIST",
            "What happens to old records: delete or compact.",
        ),
        (
            "compression.type",
            "producer",
            "producer",
            "STRING",
            "How batches are compressed in the log.",
        ),
        (
            "flush",
            "ack",
            "ack",
            "STRING",
            "When the broker syncs: before it acknowledges, or in intervals.",
        ),
        ("max.message.bytes", "1048588", "1048588", "INT", "The largest batch that is accepted."),
        (
            "min.insync.replicas",
            "2",
            "1",
            "INT",
            "How many replicas must have a record before acks=all is answered.",
        ),
        ("segment.bytes", "1073741824", "1073741824", "INT", "The size of a segment file."),
    ]
    found = [
        {
            "name": name,
            "value": value,
            "default": default,
            "type": kind,
            "documentation": text,
            "source": "DEFAULT_CONFIG" if value == default else "DYNAMIC_TOPIC_CONFIG",
            "is_default": value == default,
            "is_sensitive": False,
            "is_read_only": False,
        }
        for name, value, default, kind, text in rows
    ]
    return sorted(found, key=lambda row: bool(row["is_default"]))


def slow_requests() -> list[Row]:
    apis = ["Produce", "Fetch", "OffsetCommit", "Metadata", "Produce", "JoinGroup"]
    return [
        {
            "at_ms": now_ms() - 71_000 * (at + 1),
            "api": api,
            "client_id": f"mailer-{at}",
            "host": f"10.0.1.{at + 10}",
            "bytes": 48_211 * (at + 1),
            "took_ms": 512 + 173 * at,
            "parts": {
                "loop": 20,
                "handler": 31 * at,
                "disk": 400 if api == "Produce" else 3,
                "peers": 90 + at,
                "sending": 2,
            },
        }
        for at, api in enumerate(apis)
    ]


def stream(at: int) -> Row:
    name = ["gpu-silver", "gpu-gold", "gpu-alerts", "orders-hourly"][at]
    return {
        "name": name,
        "query_id": "3f7c0a52-83c6-4f0e-9a1b-0f6f6c1e9d11",
        "run_id": "b81e5a9c-5f1d-4f3e-8a31-1f0e7b4d2c10",
        "state": "failed" if at == 3 else "running",
        "since_ms": now_ms() - 86_400_000,
        "restarts": at % 3,
        "rows_per_s": 0 if at == 3 else 18_211.5 / (at + 1),
        "input_per_s": 18_000 / (at + 1),
        "lag": 1_200 * at,
        "batch_ms": 2_300 - 400 * at,
        "state_bytes": 310_000_000 if at else 0,
        "state_rows": 81_000 if at else 0,
        "last_error": "The source topic orders was deleted and created again" if at == 3 else None,
        "sources": ["topic gpu-telemetry"],
        "sink": "table gpu_silver",
        "updated_ms": now_ms() - 2_000 * (at + 1),
    }


Change = Callable[[Answers, str, Row], Row]


def create_topic(answers: Answers, _: str, body: Row) -> Row:
    name = str(body["name"])
    if name in answers.cluster.topics:
        raise ProblemError(409, f"Topic {name} exists already", "TOPIC_ALREADY_EXISTS")
    if not body.get("dry_run"):
        made = answers.cluster.topics["orders"] | {
            "name": name,
            "partitions": body["partitions"],
            "records": 0,
            "size_bytes": 0,
            "base_rate": 0,
            "trouble": None,
        }
        answers.cluster.topics[name] = made
    return {"created": name}


def reset_group(answers: Answers, name: str, body: Row) -> Row:
    row = answers.group(name)
    changes = [
        {
            "topic": each["topic"],
            "partition": each["partition"],
            "before": each["committed"],
            "after": 0,
            "change": None if each["committed"] is None else -each["committed"],
        }
        for each in row["partition_list"]
    ]
    return {"changes": changes, "applied": not body.get("dry_run")}


def content(text: str | None) -> Row:
    if text is None:
        return {"encoding": "null", "text": None, "size_bytes": 0, "truncated": False}
    try:
        kind = "json" if isinstance(json.loads(text), dict | list) else "text"
    except ValueError:
        kind = "text"
    return {"encoding": kind, "text": text, "size_bytes": len(text.encode()), "truncated": False}
