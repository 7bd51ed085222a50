"""Defines the measured figures: their units, the better direction, and the goal against Kafka."""

from dataclasses import dataclass
from enum import Enum


class Better(Enum):
    """The better direction of a figure."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True)
class Metric:
    """One figure of a row."""

    key: str
    unit: str
    title: str
    short: str
    """The text for a line on the screen."""
    better: Better
    goal: float | None = None
    """The ratio Barnabas / Kafka to reach: at least it if higher is better, otherwise at most it.
    """

    def meets_goal(self, ratio: float) -> bool | None:
        """None if there is no goal."""
        if self.goal is None:
            return None
        return ratio >= self.goal if self.better is Better.HIGHER else ratio <= self.goal

    @property
    def goal_text(self) -> str:
        """`>= 1.0x`, or nothing."""
        if self.goal is None:
            return ""
        return f"{'≥' if self.better is Better.HIGHER else '≤'} {self.goal:.1f}x"


MESSAGES = Metric("messages_per_s", "msg/s", "messages a second", "{} msg/s", Better.HIGHER, 1.0)
BYTES = Metric("mb_per_s", "MB/s", "payload a second", "{} MB/s", Better.HIGHER, 1.0)
REQUESTS = Metric("requests_per_s", "req/s", "requests a second", "{} req/s", Better.HIGHER, 1.0)
HANDSHAKES = Metric(
    "handshakes_per_s", "1/s", "handshakes a second", "{} handshakes/s", Better.HIGHER, 1.0
)
CPU_HANDSHAKE = Metric(
    "cpu_ms_per_handshake", "ms", "broker CPU time a handshake", "{} CPU-ms", Better.LOWER
)
CPU_REQUEST = Metric(
    "cpu_us_per_request", "us", "broker CPU time a request", "{} CPU-us", Better.LOWER
)
P50 = Metric("p50_ms", "ms", "latency p50", "p50 {} ms", Better.LOWER)
P99 = Metric("p99_ms", "ms", "latency p99", "p99 {} ms", Better.LOWER, 0.5)
P999 = Metric("p999_ms", "ms", "latency p99.9", "p99.9 {} ms", Better.LOWER)
CONNECT = Metric("connect_ms", "ms", "time to connect all", "connect {} ms", Better.LOWER)
IN_TURN = Metric("in_turn_ms", "ms", "joined one by one", "in turn {} ms", Better.LOWER, 0.5)
AT_ONCE = Metric("at_once_ms", "ms", "joined at once", "at once {} ms", Better.LOWER, 0.5)
LEAVE = Metric("leave_ms", "ms", "after 10 left", "leave {} ms", Better.LOWER, 0.5)
CPU = Metric("cpu_s_per_gb", "s/GB", "broker CPU-seconds a GB", "{} CPU-s/GB", Better.LOWER)
MEMORY_IDLE = Metric("idle_mb", "MB", "resident, idle", "idle {} MB", Better.LOWER, 0.2)
MEMORY_LOADED = Metric("loaded_mb", "MB", "resident, highest", "loaded {} MB", Better.LOWER, 0.2)
START_FRESH = Metric("fresh_ms", "ms", "start to ready", "start {} ms", Better.LOWER, 0.2)
START_AGAIN = Metric("again_ms", "ms", "ready again, with data", "restart {} ms", Better.LOWER, 0.2)
GAP = Metric("gap_ms", "ms", "longest pause of a producer", "pause {} ms", Better.LOWER, 1.0)
FAILED = Metric("failed", "messages", "given up by the producer", "{} failed", Better.LOWER)
CONTROLLER = Metric(
    "controller_ms", "ms", "until a topic could be made", "controller {} ms", Better.LOWER, 1.0
)
STOP = Metric("stop_ms", "ms", "until its process had ended", "ended {} ms", Better.LOWER, 1.0)
ROLLING = Metric("rolling_s", "s", "all brokers restarted", "rolling {} s", Better.LOWER, 1.0)
REASSIGN = Metric("reassign_s", "s", "moved", "moved {} s", Better.LOWER, 1.0)
CREATE = Metric("create_s", "s", "made, all in sync", "made {} s", Better.LOWER, 1.0)
LED = Metric("led_s", "s", "from a start until all are led", "led {} s", Better.LOWER, 1.0)
METADATA = Metric(
    "metadata_kb", "KB", "metadata: log and snapshots", "metadata {} KB", Better.LOWER, 1.0
)
BROKER_MEMORY = Metric("broker_mb", "MB", "resident, a broker", "{} MB a broker", Better.LOWER, 1.0)
IDLE_CPU = Metric(
    "idle_cpu", "% of a core", "processor, all brokers idle", "idle {} %", Better.LOWER, 1.0
)

LATENCIES = (P50, P99, P999)
METRICS = {
    metric.key: metric
    for metric in (
        *(MESSAGES, BYTES, REQUESTS, HANDSHAKES, *LATENCIES, CONNECT, CPU),
        *(CPU_REQUEST, CPU_HANDSHAKE),
        *(IN_TURN, AT_ONCE, LEAVE),
        *(MEMORY_IDLE, MEMORY_LOADED, START_FRESH, START_AGAIN),
        *(GAP, FAILED, CONTROLLER, STOP, ROLLING, REASSIGN),
        *(CREATE, LED, METADATA, BROKER_MEMORY, IDLE_CPU),
    )
}
