"""Tests a console whose extra is not whole."""

from pathlib import Path

import pytest

from barnabas.console.records.cel_filter import CelError, CelFilter
from tests.support.hidden_modules import hide


def test_an_expression_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(hide(tmp_path / "modules", "cel")))
    with (
        pytest.raises(CelError, match=r"common-expression-language.*pip install"),
        CelFilter("value.n == 1"),
    ):
        pass
