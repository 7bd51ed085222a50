"""Tests that docs/observability.md has the metrics that a broker serves."""

from barnabas.server.metrics.metric_families import FAMILIES
from tools.write_metrics_table import PAGE, table, written


def test_the_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "run python -m tools.write_metrics_table"
    assert table() in page


def test_names_are_unique_and_follow_the_conventions() -> None:
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)
    for family in FAMILIES:
        assert family.meaning.endswith("."), family.name
        if family.name.startswith("barnabas_"):
            assert family.name.endswith("_total") == (family.kind == "counter"), family.name
            assert family.name == family.name.lower()
