"""A made-up cluster: three brokers, one of them fenced; topics, groups, their rates and lag."""

import math
import random
import time
from typing import Any

Row = dict[str, Any]

# fmt: off
BASES = (
    "orders", "payments", "shipments", "invoices", "users", "sessions", "clicks", "searches",
    "carts", "prices", "stock", "returns", "reviews", "emails", "alerts", "audit", "logs",
    "metrics", "gpu-telemetry", "gpu-silver", "gpu-gold", "features", "scores", "models",
    "labels", "events", "webhooks", "exports", "imports", "backups", "ledger", "refunds",
    "coupons", "catalog", "images", "quotes", "trades", "positions", "risk", "settlements",
)
GROUP_NAMES = (
    "billing", "fulfilment", "fraud-check", "search-index", "mailer", "warehouse", "analytics",
    "reporting", "recommender", "archiver", "ledger-writer", "cache-warmer", "notifier",
    "risk-engine", "pricing", "gpu-silver", "gpu-gold", "gpu-alerts", "audit-sink", "export-s3",
    "dedup", "sessions-join", "feature-store", "scorer", "quality-gate", "replay-tool",
    "dashboards", "quotes-feed", "trades-feed", "compliance",
)
# fmt: on
HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "a" * 249,
    "../../etc/passwd",
    "orders%2F..%2Fpayments",
    "\u202edesrever",
    "emoji-\U0001f984-\u200b-name",
    "javascript:window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}}",
    "tab\tand\nnewline",
)
BROKERS = (1, 2, 3)
FENCED = 3
MEBI = 1 << 20
POINTS = 180
INTERVAL_S = 10


def wave(seed: int, at_s: float, period_s: float = 600) -> float:
    """Return a number around 1 that changes with time."""
    return (
        1 + 0.25 * math.sin(at_s / period_s * 6.283 + seed) + 0.06 * math.sin(at_s / 7 + seed * 3)
    )


class Cluster:
    """The made-up cluster, the same in every run but for its waves."""

    def __init__(self, rows: int = 0, *, hostile: bool = False, empty: bool = False) -> None:
        self._random = random.Random(20)
        self.started_s = time.time()
        topics = [] if empty else list(BASES)
        groups = [] if empty else list(GROUP_NAMES)
        if rows:
            topics += [
                f"tenant-{number:05d}.{BASES[number % 40]}.v1" for number in range(rows - 40)
            ]
            groups += [f"tenant-{number:05d}-reader" for number in range(rows - 30)]
        self.hostile_groups = list(HOSTILE) if hostile else []
        self.hostile_topics = list(HOSTILE[:3]) if hostile else []
        self.topics = {name: self._topic(at, name) for at, name in enumerate(topics)}
        self.topics |= {name: self._topic(7, name) for name in self.hostile_topics}
        if not empty:
            for name in ("__consumer_offsets", "__transaction_state", "__barnabas_streams"):
                self.topics[name] = {**self._topic(3, name), "is_internal": True}
        self.groups = {name: self._group(at, name) for at, name in enumerate(groups)}
        self.groups |= {name: self._group(5, name) for name in self.hostile_groups}
        self.deleted: set[str] = set()

    def _topic(self, at: int, name: str) -> Row:
        size = int(self._random.lognormvariate(22, 1.7)) if at != 11 else 0
        trouble = {4: "under_replicated", 9: "under_replicated", 17: "under_min_isr"}.get(at)
        return {
            "name": name,
            "is_internal": False,
            "partitions": (6, 12, 3, 24, 1)[at % 5],
            "replication_factor": 3,
            "records": size // 380,
            "size_bytes": size,
            "base_rate": 0 if at in (11, 23) else self._random.lognormvariate(7.5, 1.6),
            "groups": 0,
            "trouble": trouble,
        }

    def _group(self, at: int, name: str) -> Row:
        status = {0: "behind", 3: "stopped", 7: "stalled", 12: "behind", 20: "rewound"}.get(
            at, "ok"
        )
        topics = sorted(self.topics)[(at * 7) % max(1, len(self.topics)) :][:2] or ["orders"]
        return {
            "name": name,
            "type": "consumer" if at % 3 else "classic",
            "state": "Empty" if status == "stopped" else "Stable",
            "status": status,
            "members": 0 if status == "stopped" else 1 + at % 6,
            "topic_names": topics,
            "base_lag": {"ok": at * 3 % 40, "rewound": 41_233}.get(status, 900_000 // (at + 1)),
        }

    @property
    def now_s(self) -> float:
        """The seconds since the epoch."""
        return time.time()

    def topic_row(self, name: str) -> Row:
        """Return the row of a topic."""
        topic = self.topics[name]
        rate = topic["base_rate"] * wave(len(name), self.now_s)
        row = {key: value for key, value in topic.items() if key != "base_rate"}
        readers = sum(name in group["topic_names"] for group in self._first_groups())
        return {
            **row,
            "records_per_s": round(rate, 1),
            "bytes_per_s": round(rate * 380),
            "groups": readers,
        }

    def _first_groups(self) -> list[Row]:
        return list(self.groups.values())[:40]

    def group_row(self, name: str) -> Row:
        """Return the row of a group."""
        group = self.groups[name]
        lag = self._lag(group, self.now_s)
        is_ok, is_stopped = group["status"] == "ok", group["status"] == "stopped"
        lag_s = 0.0 if lag == 0 else round(lag / 3571 * (0.2 if is_ok else 1), 1)
        row = {key: value for key, value in group.items() if key not in ("base_lag", "topic_names")}
        return {
            **row,
            "topics": len(group["topic_names"]),
            "lag": lag,
            "lag_s": lag_s,
            "eta_s": 0
            if lag == 0
            else "never"
            if not is_ok and len(name) % 2
            else round(lag / 900),
            "retention_margin_s": None if is_ok else 2_400 if is_stopped else 86_400,
            "read_per_s": 0 if is_stopped else round(1200 * wave(len(name), self.now_s), 1),
            "lag_trend": [self._lag(group, self.now_s - 10 * ago) for ago in range(29, -1, -1)],
        }

    def _lag(self, group: Row, at_s: float) -> int:
        growth = {"behind": 180, "stopped": 950, "stalled": 420}.get(group["status"], 0)
        spread = wave(len(group["name"]), at_s, 120) if group["base_lag"] else 1
        return max(0, int(group["base_lag"] * spread + growth * (at_s - self.started_s)))

    def broker_row(self, broker: int) -> Row:
        """Return the row of a broker."""
        is_up = broker != FENCED
        now = self.now_s
        return {
            "id": broker,
            "address": f"broker-{broker}.prod.example:9092",
            "rack": f"zone-{'abc'[broker - 1]}",
            "state": "up" if is_up else "fenced",
            "is_controller": broker == 1,
            "leaders": 178 if broker == 1 else 171 if is_up else 0,
            "replicas": 349,
            "in_sync": 349 if is_up else 0,
            "disk_used_ratio": (0.61, 0.58, 0.86)[broker - 1],
            "disk_free_bytes": (780, 840, 280)[broker - 1] * 10**9,
            "records_per_s": round(206_000 * wave(broker, now)) if is_up else None,
            "bytes_in_per_s": round(91e6 * wave(broker, now)) if is_up else None,
            "bytes_out_per_s": round(200e6 * wave(broker + 2, now)) if is_up else None,
            "loop_busy_ratio": round(0.34 * wave(broker, now), 3) if is_up else None,
            "connections": 412 + 31 * broker if is_up else None,
            "version": "0.2.0",
            "silence": None if is_up else "no heartbeat for 2m; its port does not answer",
        }

    def series(self, *names: str, known: Row | None = None) -> Row:
        """Return lines over the last half hour, near the values that are known."""
        now = int(self.now_s) // INTERVAL_S * INTERVAL_S
        times = [now - INTERVAL_S * ago for ago in range(POINTS - 1, -1, -1)]
        sizes = {
            "records_per_s": 412_000,
            "bytes_in_per_s": 182e6,
            "bytes_out_per_s": 401e6,
            "lag": 1.4e6,
            "lag_s": 250,
            "produce_p99_s": 0.0041,
            "rows_per_s": 18_000,
            "batch_ms": 2_300,
            "state_bytes": 3.1e8,
        }
        sizes |= {name: value for name, value in (known or {}).items() if value}
        found: Row = {"times_ms": [at * 1000 for at in times]}
        for number, name in enumerate(names):
            noise = random.Random(name)
            line = [sizes[name] * wave(number, at) * noise.uniform(0.94, 1.06) for at in times]
            found[name] = [
                None if 60 <= at < 64 else round(value, 5) for at, value in enumerate(line)
            ]
        return found

    def replicas(self, number: int) -> list[int]:
        """Return the replicas of a partition."""
        first = number % 3
        return [BROKERS[(first + step) % 3] for step in range(3)]

    def partitions(self, name: str) -> list[Row]:
        """Return the partitions of a topic."""
        topic = self.topics[name]
        share = topic["partitions"]
        found = []
        for number in range(share):
            replicas = self.replicas(number)
            alive = [broker for broker in replicas if broker != FENCED]
            start = 1_000 * number
            skew = 0.6 + 0.8 * ((number * 37) % 11) / 10
            found.append(
                {
                    "number": number,
                    "leader": alive[0],
                    "replicas": replicas,
                    "in_sync": alive if topic["trouble"] else replicas,
                    "offline": [FENCED],
                    "start": start,
                    "end": start
                    + int(topic["records"] / share * skew)
                    + int(self.now_s - self.started_s) * 3,
                    "size_bytes": int(topic["size_bytes"] / share * skew),
                    "records_per_s": round(topic["base_rate"] / share * skew, 1),
                }
            )
        return found
