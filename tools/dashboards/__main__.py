"""Writes the dashboards of `barnabas exporter`'s files: `python -m tools.dashboards`."""

import json
from pathlib import Path

from tools.dashboards.boards import BOARDS
from tools.dashboards.grafana import Board, document

FOLDER = Path(__file__).parents[2] / "src" / "barnabas" / "exporter" / "files" / "dashboards"


def text_of(board: Board) -> str:
    """Return the file of a dashboard."""
    return json.dumps(document(board), indent=1) + "\n"


if __name__ == "__main__":
    for each in BOARDS:
        (FOLDER / f"{each.name}.json").write_text(text_of(each), encoding="utf-8")
