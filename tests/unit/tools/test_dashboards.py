"""Tests that the dashboards are current, complete and consistent."""

import json
from itertools import pairwise
from typing import Any

import pytest

from tests.support.metric_names import names_in, unknown_names
from tools.dashboards.__main__ import FOLDER, text_of
from tools.dashboards.boards import BOARDS
from tools.dashboards.grafana import COLUMNS, Board

ids = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)


def panels_of(board: Board) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text_of(board))["panels"]
    return found


@ids
def test_the_file_is_what_the_description_gives(board: Board) -> None:
    file = FOLDER / f"{board.name}.json"
    message = "the description changed: run `python -m tools.dashboards`"
    assert file.read_text(encoding="utf-8") == text_of(board), message


def test_there_is_no_file_without_a_description() -> None:
    assert {each.stem for each in FOLDER.glob("*.json")} == {board.name for board in BOARDS}


@ids
def test_panels_name_only_metrics_that_exist(board: Board) -> None:
    for panel in board.panels:
        for query in panel.queries:
            assert names_in(query.expr), f"{panel.title} asks for nothing"
            assert unknown_names(query.expr) == set(), panel.title
    for variable in board.variables:
        assert unknown_names(variable.metric) == set(), variable.name


@ids
def test_queries_use_only_variables_that_the_board_has(board: Board) -> None:
    known = {"cluster", "__rate_interval", *(variable.name for variable in board.variables)}
    for panel in board.panels:
        for query in panel.queries:
            text = board.expression(query)
            used = {word.split('"')[0].split("]")[0] for word in text.split("$")[1:]}
            assert used <= known, f"{panel.title}: {text}"
            assert "@" not in text


@ids
def test_panels_have_places_of_their_own(board: Board) -> None:
    panels = panels_of(board)
    assert len({panel["id"] for panel in panels}) == len(panels)
    covered: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= COLUMNS
        assert not cells & covered, panel["title"]
        covered |= cells


@ids
def test_charts_have_units_and_titles_of_their_own(board: Board) -> None:
    for row in board.rows:
        titles = [panel.title for panel in row.panels]
        assert len(set(titles)) == len(titles)
    for panel in panels_of(board):
        if panel["type"] != "row":
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert {each["datasource"]["uid"] for each in panel["targets"]} == {"${datasource}"}
            letters = [each["refId"] for each in panel["targets"]]
            assert all(a < b for a, b in pairwise(letters))


def test_boards_have_identities_of_their_own() -> None:
    documents = [json.loads(text_of(board)) for board in BOARDS]
    assert len({each["uid"] for each in documents}) == len(BOARDS)
    assert len({each["title"] for each in documents}) == len(BOARDS)
