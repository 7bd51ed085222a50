"""Writes the three-broker part of RESULTS.md and joins it with the other parts.

The parts are measured separately as well as together: a run replaces those that it measured and
leaves the others unchanged.
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
from bench.security_report import SECURITY_TITLE

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


def spliced(
    page: str,
    *,
    single: str | None = None,
    security: str | None = None,
    cluster: str | None = None,
) -> str:
    """The page with the given parts replaced."""
    before, cluster_mark, after = page.partition(f"{CLUSTER_TITLE}\n")
    first, security_mark, second = before.partition(f"{SECURITY_TITLE}\n")
    had = (first, security_mark + second, cluster_mark + after)
    new = (single, security, cluster)
    parts = [old if part is None else part for old, part in zip(had, new, strict=True)]
    return joined(part.rstrip("\n") + "\n" for part in parts if part)
