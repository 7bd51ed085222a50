"""Tests thresholds from a file: accepted values, and errors with a fix."""

from pathlib import Path

import pytest

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.settings_file import SettingsError, read


def written(folder: Path, text: str) -> Path:
    file = folder / "thresholds.yaml"
    file.write_text(text)
    return file


def test_numbers_replace_defaults(tmp_path: Path) -> None:
    found = read(written(tmp_path, "idle_util_pct: 5\nstraggler_peers: 8\n"))

    assert found == Thresholds(idle_util_pct=5.0, straggler_peers=8)


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert read(written(tmp_path, "# nothing\n")) == Thresholds()


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("idle_utl_pct: 5", "did you mean idle_util_pct?"),
        ("colour: 5", "remove it, or choose from idle_util_pct"),
        ("idle_util_pct: low", "write a number"),
        ("idle_util_pct: yes", "write a number"),
        ("idle_util_pct: -1", "not negative"),
        ("idle_util_pct: .nan", "not negative"),
        ("straggler_peers: 1.5", "whole number"),
        ("- 5", "NAME: NUMBER"),
        ("a: [", "is not YAML"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str, remedy: str) -> None:
    with pytest.raises(SettingsError, match=remedy) as refused:
        read(written(tmp_path, text))
    assert "thresholds.yaml" in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.yaml: No such file"):
        read(tmp_path / "nowhere.yaml")
