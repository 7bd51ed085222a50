"""Writes the three-broker part of RESULTS.md and joins it with the single-broker part.

The two are measured apart as well as together: a run replaces the part that it measured and leaves
the other as it is.
"""

from bench.cluster_rows import CLUSTER_ROWS
from bench.report import (
    cpu_section,
    facts,
    failures,
    joined,
    row_outcomes,
    sections,
    verdict,
)
from bench.results import Results

CLUSTER_TITLE = "# Three brokers"

INTRODUCTION = """\
Three brokers of one system on the same machine, three replicas of every partition, acks=all,
`min.insync.replicas=2`; then the same for the other system. Topics have 6 partitions. Kafka's nodes
are broker and controller at once, each with a heap of 1 GB, as the single broker above has. Three
brokers, their replicas and the clients share the cores. The goal is to be ahead in each row. A cell
is the median, lowest and highest in parentheses, of the rounds, or where a row has turns of its own
(5 faults, 2 rolling restarts, 3 moves) of these.

Records are flushed to the disk when the operating system sees fit, on every replica, unless a row
says "flushed before the ack": that is Barnabas's default (`flush=ack`) beside Kafka with
`flush.messages=1`.
"""


def render_cluster(results: Results) -> str:
    """The whole part."""
    parts = [f"{CLUSTER_TITLE}\n", INTRODUCTION, verdict(row_outcomes(results, CLUSTER_ROWS))]
    parts += [facts(results), *sections(results, CLUSTER_ROWS)]
    parts += [cpu_section(results, CLUSTER_ROWS), failures(results)]
    return joined(parts)


def spliced(page: str, *, single: str | None = None, cluster: str | None = None) -> str:
    """The page with the parts that are given in the place of those it had."""
    had_single, mark, rest = page.partition(f"{CLUSTER_TITLE}\n")
    first = had_single if single is None else single
    second = mark + rest if cluster is None else cluster
    return joined(part.rstrip("\n") + "\n" for part in (first, second) if part)
