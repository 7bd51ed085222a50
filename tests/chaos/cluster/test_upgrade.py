"""Brokers of two releases in one cluster under load: upgraded, rolled back, upgraded, finalized."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.testing.cluster_upgrade import upgrade

pytestmark = [pytest.mark.slow]


@pytest.mark.timeout(900)
def test_an_upgrade_and_a_rollback_take_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    report = upgrade(tmp_path)
    assert report["problems"] == []
    assert report["errors"] == []
    assert report["read"] == report["acknowledged"]
    for name in ("acknowledged", "committed", "aborted", "commits", "retried", "longest_pause_ms"):
        record_property(name, report[name])
