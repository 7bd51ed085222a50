"""The schemas of the lake's tables, as plain data that Spark, Arrow and readers share.

A table is a folder of Parquet files named after their micro-batch: one for each batch, or one for
each task. A batch that runs again after a crash replaces only its own files (see `lake`).

    LAKE/<table>/batch-0000000042.parquet
    LAKE/<table>/batch-0000000042-part-0001.parquet
"""

from dataclasses import dataclass

from barnabas.telemetry.samples.metrics import COLUMNS


@dataclass(frozen=True)
class Column:
    """A column, with its type in Spark's syntax."""

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
"""Every record, unchanged."""

SILVER = (
    *_columns(
        """
        gpu_id string
        instance string
        profile string
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
        other map<string,double>
        partition int
        offset bigint
        """
    ),
)
"""One row for each GPU or MIG instance and instant, with a column for each metric (null where not
sampled). `instance` is null where the row is about the whole card; `other` has the metrics without
a column, by name."""

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
        instance string
        profile string
        instances int
        idle_instances array<string>
        gpus int
        samples bigint
        covered_seconds double
        interval_s double
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
        dram_active_mean double
        tensor_active_mean double
        pcie_traffic double
        pcie_capacity double
        nvlink_traffic double
        nvlink_capacity double
        xids array<struct<timestamp:timestamp,xid:int>>
        """
    ),
)
"""A window of one GPU (level gpu), of the GPUs of a host (host) or of a model (model), or of a MIG
instance (instance).

A GPU that is split into instances has one row of level gpu, with its energy and hours, and one of
level instance for each of them, with utilisation, memory and pod of the instance. instances and
idle_instances are how many it has and which of them idle; both are null for other GPUs.

A sample stands until the next one of its GPU (see `covering`): covered_seconds is how much of the
window samples stand for, interval_s how far apart they are. A window without a sample of a GPU has
a row while the last sample stands: samples is 0 and all statistics are that sample's. Hours, energy
and costs are sums over covered_seconds, never over windows. Files of version 0.1 lack both columns.

The columns after the statistics are what findings are made of; they are null above level gpu,
except energy_joules, which is the sum, as is covered_seconds. Shares are of the samples that carry
the metric, and of the time before the first of them by the sample before:
idle is util at most `idle_util_pct`, busy util at least `busy_util_pct`; a fall is a step from
busy to idle between neighbouring samples; capped and thermal go by the clock event reasons, or
by power at the limit where reasons are not sampled. xids has each sample whose XID differs from
the sample before it in the window, the window's first included, zeros left out; it is null where
no XID was sampled. Traffic and capacity of links are in bytes a second: see `links`.
"""

EDGES = _columns(
    """
    first_us bigint
    last_us bigint
    counter_first double
    counter_last double
    watts_at_end double
    capped_at_end double
    thermal_at_end double
    """
)
"""What a window of a GPU says of its first and last sample, for the windows beside it.

These columns never reach the table."""


def values_of(metric: str) -> str:
    """Return the name of the column that has the samples of a metric, on the way to the levels."""
    return f"{metric}_values"


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
    gpus array<string>
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
