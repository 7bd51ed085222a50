"""Parses lines of Prometheus text, and the labels that identify a GPU.

    name{label="value",...} value [timestamp] [# {label="value"} value [timestamp]]

The last part is an exemplar of OpenMetrics. It is checked and ignored, and so is the timestamp:
dcgm-exporter writes none, and the time of the scrape is the time of the sample.

`exporter_pages` parses whole pages with a cache; it must agree with this grammar.

A card that is split into MIG instances reports each instance under the card's UUID. The labels
GPU_I_ID and GPU_I_PROFILE identify the instance (see `mig`).
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from barnabas.telemetry.samples.sample_messages import MODEL_LABEL, Snapshot

PREFIX = "DCGM_FI_"
OWN_FIELDS = {"UUID", "device", "Hostname", "hostname", MODEL_LABEL}
"""Labels that become fields of the message; the others stay labels."""

_HEAD = re.compile(r"[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*)([ \t]*\{|[ \t]+)")
_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*')
_ESCAPE = re.compile(r'\\([\\n"])')
_UNESCAPED = {"\\": "\\", "n": "\n", '"': '"'}


class Line(NamedTuple):
    """One sample of a page."""

    name: str
    labels: dict[str, str]
    value: float
    labels_end: int
    """The position of the closing brace in the line; -1 if there is none."""


def parse_line(line: str) -> Line:
    """Read one line of a page; raises ValueError with the reason."""
    head = _HEAD.match(line)
    if head is None:
        raise ValueError("not a line of Prometheus text: no name of a metric, or no value")
    labels: dict[str, str] = {}
    begin, closing = head.end(), -1
    if line[begin - 1] == "{":
        labels, begin = _labels(line, begin)
        closing = begin - 1
    body, mark, exemplar = line[begin:].partition("#")
    if mark:
        _check_exemplar(exemplar.strip())
    return Line(head[1], labels, _value(body), closing)


@lru_cache(maxsize=65_536)
def parse_labels(text: str) -> Mapping[str, str]:
    """Read Prometheus label text: `gpu="0",UUID="GPU-..."`, with or without braces.

    Raises ValueError. The text of a GPU repeats with every row, hence the cache.
    """
    inner = text.strip().removeprefix("{").removesuffix("}").strip()
    labels, end = _labels(inner + "}", 0)
    if end != len(inner) + 1:
        raise ValueError(f"Invalid labels: {inner[end:]!r:.40} follows them")
    # Dumps of Prometheus keep the metric's name among the labels.
    labels.pop("__name__", None)
    return labels


def number(text: str) -> float:
    """Read a value in Prometheus' form; return an int if that is exact."""
    if "_" in text or not text.isascii():  # a number for Python, but not for Prometheus
        raise ValueError(f"value {text!r:.40} is not a number")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"value {text!r:.40} is not a number") from None
    return int(value) if value.is_integer() else value


def gpu_id_of(labels: Mapping[str, str]) -> str:
    """Return the unique id of this GPU; "" if there is none."""
    return labels.get("UUID", "") or labels.get("uuid", "")


def snapshot_of(
    labels: Mapping[str, str], *, at_ms: int, default_hostname: str, metrics: Mapping[str, float]
) -> Snapshot:
    """Make a snapshot from Prometheus labels; raises ValueError if they name no GPU."""
    gpu_id = gpu_id_of(labels)
    if not gpu_id:
        raise ValueError("no label UUID says which GPU this is")
    index = labels.get("gpu", "")
    return Snapshot(
        timestamp_ms=at_ms,
        gpu_id=gpu_id,
        device=labels.get("device", "") or (f"nvidia{index}" if index else ""),
        hostname=labels.get("Hostname", "") or labels.get("hostname", "") or default_hostname,
        model=labels.get(MODEL_LABEL, ""),
        labels={name: text for name, text in labels.items() if name not in OWN_FIELDS and text},
        metrics=metrics,
    )


def _labels(text: str, begin: int) -> tuple[dict[str, str], int]:
    """Read labels up to their closing brace; return them and where the rest begins."""
    labels: dict[str, str] = {}
    at = begin
    while (found := _LABEL.match(text, at)) is not None:
        name, value = found.groups()
        if name in labels:
            raise ValueError(f"Invalid labels: {name} is there twice")
        labels[name] = _ESCAPE.sub(_unescape, value) if "\\" in value else value
        at = found.end()
        if text[at : at + 1] != ",":
            break
        at += 1
    while text[at : at + 1] in {" ", "\t"}:
        at += 1
    if text[at : at + 1] != "}":
        raise ValueError(f"Invalid labels: {text[at : at + 40]!r}")
    return labels, at + 1


def _unescape(found: re.Match[str]) -> str:
    return _UNESCAPED[found[1]]


def _value(body: str) -> float:
    words = body.split()
    if not 1 <= len(words) <= 2:
        raise ValueError("expected a value, and at most a timestamp")
    if len(words) == 2:
        number(words[1])
    return number(words[0])


def _check_exemplar(text: str) -> None:
    if not text.startswith("{"):
        raise ValueError("the text after # is not an exemplar")
    _, end = _labels(text, 1)
    _value(text[end:])
