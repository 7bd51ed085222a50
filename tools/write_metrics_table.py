"""Writes the table of metrics into docs/observability.md, from the table of the broker.

python -m tools.write_metrics_table
"""

from pathlib import Path

from barnabas.server.metrics.metric_families import FAMILIES, Family

PAGE = Path(__file__).parents[1] / "docs" / "observability.md"
BEGIN, END = "<!-- metrics -->\n", "<!-- end of metrics -->\n"


def table() -> str:
    """Return the table in Markdown."""
    rows = ["| name | type | labels | meaning |", "|---|---|---|---|", *map(_row, FAMILIES)]
    return "\n".join(rows) + "\n"


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{family.name}` | {family.kind} | {labels} | {family.meaning} |"


def written(page: str) -> str:
    """Return the page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
