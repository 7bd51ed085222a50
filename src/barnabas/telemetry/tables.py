"""What the tables of the lake hold, as plain data that Spark, Arrow and readers build on.

A table is a folder of Parquet files named after their micro-batch: one for each batch, or one for
each task where tasks write. A batch that runs again after a crash replaces its own files and
nothing else (see `lake`).

    LAKE/<table>/batch-0000000042.parquet
    LAKE/<table>/batch-0000000042-part-0001.parquet
"""

from dataclasses import dataclass

from barnabas.telemetry.metrics import COLUMNS


@dataclass(frozen=True)
class Column:
    """A column, with its type in Spark's words."""

    name: str
    type: str


def _columns(text: str) -> tuple[Column, ...]:
    pairs = (line.split(None, 1) for line in text.strip().splitlines())
    return tuple(Column(name, kind) for name, kind in pairs)


BRONZE = _columns(
    """
    key binary
    value binary
    headers array<struct<key:string,value:binary>>
    topic string
    partition int
    offset bigint
    timestamp timestamp
    """
)
"""Every record as it came."""

SILVER = (
    *_columns(
        """
        gpu_id string
        timestamp timestamp
        hostname string
        device string
        model string
        namespace string
        pod string
        container string
        """
    ),
    *(Column(name, "double") for name in COLUMNS),
    *_columns(
        """
        partition int
        offset bigint
        """
    ),
)
"""One row for each GPU and instant, with a column for each metric (null where not sampled)."""

ROLLED = (
    "gpu_util",
    "mem_copy_util",
    "fb_used",
    "power_usage",
    "gpu_temp",
    "memory_temp",
    "sm_clock",
    "sm_active",
)
"""The metrics that get mean, p50, p95 and max."""

STATISTICS = ("mean", "p50", "p95", "max")

GOLD = (
    *_columns(
        """
        window_start timestamp
        window_end timestamp
        level string
        gpu_id string
        hostname string
        model string
        namespace string
        pod string
        gpus int
        samples bigint
        """
    ),
    *(Column(f"{metric}_{statistic}", "double") for metric in ROLLED for statistic in STATISTICS),
    *_columns(
        """
        util_idle_share double
        util_busy_share double
        util_falls int
        fb_total double
        power_limit double
        power_capped_share double
        thermal_share double
        sm_clock_top double
        energy_joules double
        ecc_sbe_last double
        ecc_dbe_last double
        remapped_rows_last double
        pcie_replay_last double
        xids array<struct<timestamp:timestamp,xid:int>>
        """
    ),
)
"""A window of one GPU (level gpu), of the GPUs of a host (host) or of a model (model).

The columns after the statistics are what findings are made of; they are null above level gpu,
except energy_joules, which is the sum. Shares are of the samples that carry the metric:
idle is util at most `idle_util_pct`, busy util at least `busy_util_pct`; a fall is a step from
busy to idle between neighbouring samples; capped and thermal go by the clock event reasons, or
by power at the limit where reasons are not sampled. xids has each sample whose XID differs from
the sample before it in the window, the window's first included, zeros left out; it is null where
no XID was sampled.
"""

FINDINGS = _columns(
    """
    window_start timestamp
    window_end timestamp
    gpu_id string
    hostname string
    model string
    namespace string
    finding string
    severity string
    value double
    unit string
    seconds double
    joules double
    detail string
    """
)
"""One finding about one GPU in one window of 10 s."""

ALERTS = _columns(
    """
    alert_id string
    state string
    finding string
    severity string
    gpu_id string
    hostname string
    model string
    namespace string
    first_seen timestamp
    last_seen timestamp
    value double
    unit string
    message string
    action string
    """
)
"""What gpu-alerts carries as JSON, and the table of the same name keeps."""

TABLES = {
    "bronze": BRONZE,
    "silver": SILVER,
    "gold_10s": GOLD,
    "gold_1m": GOLD,
    "findings": FINDINGS,
    "alerts": ALERTS,
}
