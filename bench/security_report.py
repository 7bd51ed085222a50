"""Writes the part of RESULTS.md about security."""

from bench.metrics import CPU_REQUEST, REQUESTS, Metric
from bench.report import (
    OURS,
    THEIRS,
    cpu_section,
    facts,
    failures,
    joined,
    number,
    row_outcomes,
    sections,
    table,
    verdict,
)
from bench.results import Results
from bench.security_rows import COSTS, SECURITY_ROWS, Cost

SECURITY_TITLE = "# Security"

INTRODUCTION = """\
The same for one broker with TLS, SASL and ACLs. Both brokers have the same certificate (ECDSA on
P-256) and speak TLS 1.3 with TLS_AES_256_GCM_SHA384; no session is resumed. Users authenticate with
SASL PLAIN. The authorizers are Barnabas's and Kafka's StandardAuthorizer, both with the same 10,000
ACLs. CPU time is the broker's alone, user and system; the other figures show the client's work too.
"""
HEADER = (
    *("what", "figure"),
    *("Barnabas without", "with", "ratio"),
    *("Kafka without", "with", "ratio"),
)


def render_security(results: Results) -> str:
    """The whole part."""
    parts = [f"{SECURITY_TITLE}\n", INTRODUCTION, verdict(row_outcomes(results, SECURITY_ROWS))]
    parts += [facts(results), *sections(results, SECURITY_ROWS), cost_section(results)]
    parts += [cpu_section(results, SECURITY_ROWS), failures(results)]
    return joined(parts)


def cost_section(results: Results) -> str:
    """What each part of security costs each broker."""
    lines = [
        (cost.title, f"{metric.title} ({metric.unit})", *cells(results, cost, metric))
        for cost in COSTS
        if results.has(cost.without) and results.has(cost.with_it)
        for metric in (REQUESTS, CPU_REQUEST)
    ]
    heading = "## What it costs: each broker beside itself"
    return f"{heading}\n\n{table(HEADER, lines)}" if lines else ""


def cells(results: Results, cost: Cost, metric: Metric) -> list[str]:
    """The medians of both brokers without and with it, and their ratios."""
    found = []
    for broker in (OURS, THEIRS):
        without = results.summary(cost.without, broker, metric)
        with_it = results.summary(cost.with_it, broker, metric)
        found += ["" if each is None else number(each.median) for each in (without, with_it)]
        if without is None or with_it is None or not without.median:
            found.append("")
        else:
            found.append(f"{with_it.median / without.median:.2f}x")
    return found
