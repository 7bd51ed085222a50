"""Writes the generated parts of docs/telemetry.md: `python tools/write_telemetry_page.py`.

A part lies between `<!-- name -->` and `<!-- end of name -->`; the rest of the page is prose.
"""

import ast
import inspect
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

from barnabas.telemetry.findings import thresholds
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.findings.xids import KNOWN
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake_tables import ROLLED, STATISTICS
from barnabas.telemetry.samples.catalogue import CATALOGUE
from barnabas.telemetry.samples.metrics import METRICS
from barnabas.telemetry.samples.sample_refusals import Reason

PAGE = Path(__file__).parents[1] / "docs" / "telemetry.md"


def page(text: str) -> str:
    """Return the page with its generated parts up to date."""
    for name, part in PARTS.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        assert text.count(start) == text.count(end) == 1, f"{PAGE} has no place for {name}"
        before, _, rest = text.partition(start)
        text = before + start + part() + end + rest.partition(end)[2]
    return text


def _table(titles: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [titles, ("---",) * len(titles), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def threshold_table() -> str:
    """Return the settings of the rules with their reasons."""
    reasons = _field_reasons()
    rows: list[tuple[object, ...]] = [
        (f"`{each.name}`", f"{each.default:g}", reasons[each.name])
        for each in fields(Thresholds)
        if isinstance(each.default, int | float)
    ]
    return _table(("setting", "default", "why"), rows)


def _field_reasons() -> dict[str, str]:
    """Return the docstring of each field."""
    tree = ast.parse(inspect.getsource(thresholds))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef)).body
    found = {}
    for node, after in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr):
            assert isinstance(node.target, ast.Name)
            assert isinstance(after.value, ast.Constant)
            found[node.target.id] = " ".join(str(after.value.value).split())
    return found


def finding_table() -> str:
    """Return the findings with their remedies."""
    rows: list[tuple[object, ...]] = [
        (f"`{name}`", entry.severity, entry.unit, entry.action or "that of its code, below")
        for name, entry in CATALOGUE.items()
    ]
    return _table(("finding", "severity", "value in", "what to do"), rows)


def xid_table() -> str:
    """Return the XIDs with their remedies."""
    rows: list[tuple[object, ...]] = [
        (each.code, each.severity, each.meaning, each.action)
        for each in sorted(KNOWN.values(), key=lambda each: each.code)
    ]
    return _table(("XID", "severity", "meaning", "what to do"), rows)


def reason_list() -> str:
    """Return the values of dlq.reason."""
    return ", ".join(f"`{each.value}`" for each in Reason) + "\n"


def column_table() -> str:
    """Return the tables and their columns."""
    rows: list[tuple[object, ...]] = [(f"`{name}`", _columns(name)) for name in lake_tables.TABLES]
    return _table(("table", "columns"), rows)


def _columns(table: str) -> str:
    names = [each.name for each in lake_tables.TABLES[table]]
    metrics = {each.column for each in METRICS}
    rolled = {f"{metric}_{statistic}" for metric in ROLLED for statistic in STATISTICS}
    shown = {
        "*one for each metric*"
        if table == "silver" and name in metrics
        else f"*{', '.join(STATISTICS)} of {', '.join(ROLLED)}*"
        if name in rolled
        else f"`{name}`": None
        for name in names
    }
    return ", ".join(shown)


def metric_table() -> str:
    """Return the known metrics."""
    rows: list[tuple[object, ...]] = [
        (f"`{each.column}`", " ".join(f"`{n}`" for n in (each.dcgm, *each.also)), each.unit,
         f"{each.low:g} to {each.high:g}")
        for each in METRICS
    ]  # fmt: skip
    return _table(("column", "metric", "unit", "plausible"), rows)


PARTS = {
    "thresholds": threshold_table,
    "findings": finding_table,
    "xids": xid_table,
    "reasons": reason_list,
    "columns": column_table,
    "metrics": metric_table,
}

if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
