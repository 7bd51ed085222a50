"""Writes the files for Prometheus and Grafana that the package has."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

SUFFIXES = (".yml", ".json")


class FilesDifferError(Exception):
    """Files of these names are there, with other contents; nothing was written."""

    def __init__(self, places: list[Path]) -> None:
        super().__init__(", ".join(map(str, places)))
        self.places = places


def write_files(folder: Path) -> list[Path]:
    """Write all files and return their places; files that differ are never replaced."""
    wanted = {folder / name: text for name, text in _shipped(files("barnabas.exporter") / "files")}
    differing = [
        place
        for place, text in wanted.items()
        if place.exists() and place.read_text(encoding="utf-8") != text
    ]
    if differing:
        raise FilesDifferError(differing)
    for place, text in wanted.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return list(wanted)


def _shipped(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the relative path and the contents of each file."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _shipped(each, f"{above}{each.name}/")
        elif each.name.endswith(SUFFIXES):
            yield f"{above}{each.name}", each.read_text(encoding="utf-8")
