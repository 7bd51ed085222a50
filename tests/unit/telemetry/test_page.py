"""Tests that the generated parts of docs/telemetry.md agree with the code."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_says_what_the_code_does() -> None:
    path = ROOT / "tools" / "write_telemetry_page.py"
    spec = importlib.util.spec_from_file_location("write_telemetry_page", path)
    assert spec is not None
    assert spec.loader is not None
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    written = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")

    assert written == writer.page(written), "run `python tools/write_telemetry_page.py`"
