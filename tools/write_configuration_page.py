"""Writes docs/configuration.md from the settings: `python tools/write_configuration_page.py`."""

from pathlib import Path

from barnabas.config import page

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
