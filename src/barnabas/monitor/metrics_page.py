"""Parses the text format of Prometheus, as far as a watcher needs it: some metrics by name."""

import re
from collections.abc import Collection, Mapping, Sequence

Samples = dict[str, list[tuple[Mapping[str, str], float]]]

_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_NEWLINE = "n"


def parse_page(
    text: str, names: Collection[str]
) -> Mapping[str, Sequence[tuple[Mapping[str, str], float]]]:
    """Return the samples of some metrics; a line that cannot be read is left out."""
    found: Samples = {}
    for line in text.split("\n"):
        name = _name(line)
        if name not in names:
            continue
        labels, _, rest = (
            line[len(name) :].rpartition("}") if "{" in line else ("", "", line[len(name) :])
        )
        try:
            value = float(rest.split()[0])
        except (ValueError, IndexError):
            continue
        found.setdefault(name, []).append((_labels(labels), value))
    return found


def _name(line: str) -> str:
    brace, space = line.find("{"), line.find(" ")
    ends = [at for at in (brace, space) if at >= 0]
    return line[: min(ends)] if ends else ""


def _labels(text: str) -> Mapping[str, str]:
    return {
        name: _ESCAPED.sub(lambda found: "\n" if found[1] == _NEWLINE else found[1], value)
        for name, value in _LABEL.findall(text)
    }
