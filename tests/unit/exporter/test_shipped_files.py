"""Tests that the exporter writes its files for Prometheus and Grafana."""

import json
from pathlib import Path

import pytest

from barnabas.exporter import files
from barnabas.exporter.shipped_files import FilesDifferError, write_files

ORIGINALS = Path(files.__file__).parent


def test_all_files_are_written_and_again_without_harm(tmp_path: Path) -> None:
    places = write_files(tmp_path / "observability")
    assert write_files(tmp_path / "observability") == places
    names = {str(each.relative_to(tmp_path / "observability")) for each in places}
    shipped = {
        str(each.relative_to(ORIGINALS))
        for pattern in ("*.yml", "dashboards/*.json")
        for each in ORIGINALS.glob(pattern)
    }
    assert names == shipped
    for each in places:
        assert (
            each.read_text()
            == (ORIGINALS / each.relative_to(tmp_path / "observability")).read_text()
        )
        if each.suffix == ".json":
            assert json.loads(each.read_text())["panels"]


def test_a_file_that_was_changed_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "alerts.yml").write_text("groups: []")
    with pytest.raises(FilesDifferError, match=r"alerts\.yml"):
        write_files(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["alerts.yml"]


def test_the_repository_shows_them_at_its_root() -> None:
    assert (Path(__file__).parents[3] / "observability").resolve() == ORIGINALS.resolve()
