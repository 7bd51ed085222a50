"""Tests that the parser with a cache gives the same as a simple parser, page after page."""

import math
from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from barnabas.telemetry.collect.exporter_pages import PageReader
from barnabas.telemetry.collect.exposition import parse_line
from barnabas.telemetry.samples.readings import Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Snapshot
from tests.support.examples import examples

NAME_LETTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:")
DIGITS = set("0123456789")
OWN = {"UUID", "device", "Hostname", "hostname", "modelName"}


class Cursor:
    """A simple parser of one line: letter by letter, without a cache."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        letter = self.peek()
        self.at += 1
        return letter

    def blanks(self) -> int:
        begin = self.at
        while self.peek() in {" ", "\t"}:
            self.at += 1
        return self.at - begin

    def expect(self, letter: str) -> None:
        if self.take() != letter:
            raise ValueError(letter)

    def name(self, allowed: set[str]) -> str:
        begin = self.at
        while self.peek() in allowed and self.peek():
            self.at += 1
        found = self.text[begin : self.at]
        if not found or found[0] in DIGITS:
            raise ValueError("name")
        return found

    def labels(self) -> dict[str, str]:
        found: dict[str, str] = {}
        self.expect("{")
        self.blanks()
        while self.peek() != "}":
            name = self.name(NAME_LETTERS - {":"})
            self.blanks()
            self.expect("=")
            self.blanks()
            if name in found:
                raise ValueError("twice")
            found[name] = self.quoted()
            self.blanks()
            if self.peek() != ",":
                break
            self.take()
            self.blanks()
        self.expect("}")
        return found

    def quoted(self) -> str:
        self.expect('"')
        found = ""
        while (letter := self.take()) != '"':
            if not letter:
                raise ValueError("no closing quote")
            if letter != "\\":
                found += letter
                continue
            escaped = self.take()
            if not escaped:
                raise ValueError("no closing quote")
            found += {"n": "\n", '"': '"', "\\": "\\"}.get(escaped, "\\" + escaped)
        return found


def value_of(words: str) -> float:
    found = words.split()
    if len(found) not in {1, 2} or any("_" in each or not each.isascii() for each in found):
        raise ValueError("value")
    return next(iter([float(each) for each in found]))


def simple_line(line: str) -> tuple[str, dict[str, str], float]:
    cursor = Cursor(line)
    cursor.blanks()
    name = cursor.name(NAME_LETTERS)
    gap = cursor.blanks()
    labels: dict[str, str] = {}
    if cursor.peek() == "{":
        labels = cursor.labels()
    elif not gap:
        raise ValueError("gap")
    body, mark, exemplar = line[cursor.at :].partition("#")
    if mark:
        rest = Cursor(exemplar.strip())
        rest.labels()
        value_of(rest.text[rest.at :])
    return name, labels, value_of(body)


Values = dict[tuple[str, str], tuple[dict[str, str], dict[str, float]]]


def simple_page(text: str, tally: Tally) -> tuple[Values, list[int]]:
    """Return labels and metrics by GPU, and the numbers of the refused lines."""
    found: Values = {}
    refused: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        try:
            name, labels, value = simple_line(line)
        except ValueError:
            refused.append(number)
            continue
        if not name.startswith("DCGM_FI_"):
            tally.unknown[name] += 1
            continue
        if math.isnan(value) or 2**63 - 16 <= value <= 2**63 or 2**31 - 16 <= value < 2**31:
            tally.no_value += 1
            continue
        uuid = labels.get("UUID", "") or labels.get("uuid", "")
        if math.isinf(value) or not uuid:
            refused.append(number)
            continue
        kept, metrics = found.setdefault(_key(uuid, labels), ({}, {}))
        for each, text_of in labels.items():
            if each not in OWN and text_of:
                kept.setdefault(each, text_of)
        metrics.setdefault(name, value)
    return found, refused


def _key(uuid: str, labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the card and the MIG instance."""
    return uuid, labels.get("GPU_I_ID", "")


label_text = st.text(st.sampled_from('ab}{=,# \\"\u2028é\x85'), max_size=4)


def quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


@st.composite
def label_sets(draw: st.DrawFn) -> str:
    """Return labels in any order, sometimes with spaces, tabs and a last comma."""
    uuid = draw(st.sampled_from(["GPU-1", "GPU-2", ""]))
    labels = {"UUID": uuid, "pod": draw(label_text), "gpu": draw(st.sampled_from("012"))}
    labels |= draw(st.dictionaries(st.sampled_from(["GPU_I_ID", "Hostname", "x"]), label_text))
    pairs = draw(st.permutations(list(labels.items())))
    gap = draw(st.sampled_from(["", "", " ", "\t"]))
    inner = f",{gap}".join(f"{name}{gap}={gap}{quote(text)}{gap}" for name, text in pairs)
    return inner + draw(st.sampled_from(["", "", ",", ", "]))


numbers = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        [
            "NaN",
            "+Inf",
            "-Inf",
            "Inf",
            "nan",
            "1_0",
            "\u0661",
            "0x1p3",
            "",
            "1e5",
            "-0",
            "+7",
            ".5",
            "5.",
        ]
    ),
    st.sampled_from([str(2**63 - 14), str(2**63 - 1), str(2**31 - 14), str(2**31), "1e400"]),
)
tails = st.sampled_from(
    [
        "",
        " ",
        "\r",
        " 1794725694154",
        "\t12",
        " 1.5",
        ' # {t="a}b"} 0.5',
        " # {} 1 2",
        " # x",
        " 1 2",
    ]
)
garbage = st.text(st.sampled_from('aD{}=",\\ 1.#e-\x00\té\r'), max_size=20)
comments = st.sampled_from(["", "# HELP DCGM_FI_DEV_GPU_TEMP {a}", "# TYPE x gauge", "  ", "#"])


@st.composite
def lines(draw: st.DrawFn, labels: list[str]) -> str:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(garbage)
    if kind == 1:
        return draw(comments)
    name = draw(
        st.sampled_from(["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_FB_USED", "DCGM_EXP", "go_x"])
    )
    lead, gap = draw(st.sampled_from(["", "", " "])), draw(st.sampled_from([" ", " ", "\t", ""]))
    body = f"{{{draw(st.sampled_from(labels))}}}" if draw(st.integers(0, 9)) else ""
    return f"{lead}{name}{body}{gap}{draw(numbers)}{draw(tails)}"


@st.composite
def page_rows(draw: st.DrawFn) -> list[str]:
    """Return several pages of one exporter: the same few label texts with other values."""
    labels = draw(st.lists(label_sets(), min_size=1, max_size=4))
    row = st.lists(lines(labels), max_size=8).map("\n".join)
    return draw(st.lists(row, min_size=1, max_size=4))


@given(page_rows())
@settings(max_examples=examples(400))
def test_the_reader_with_a_memory_equals_a_simple_reader(pages: list[str]) -> None:
    reader = PageReader(where="p", default_hostname="h")
    for page in pages:
        tally, simple = Tally(), Tally()
        readings = list(reader.read(page, at_ms=7, tally=tally))
        wanted, refused = simple_page(page, simple)
        got = {
            _key(each.gpu_id, each.labels): (dict(each.labels), dict(each.metrics))
            for each in readings
            if isinstance(each, Snapshot)
        }
        assert got == wanted
        assert list(got) == list(wanted)
        assert [each.where for each in readings if isinstance(each, Refusal)] == [
            f"p line {number}" for number in refused
        ]
        assert (tally.no_value, tally.unknown) == (simple.no_value, Counter(simple.unknown))


@given(label_sets(), st.floats(-1e9, 1e9), st.sampled_from(["", " 1794725694154"]))
def test_well_formed_lines_mean_what_prometheus_client_reads(
    labels: str, value: float, timestamp: str
) -> None:
    line = f"DCGM_FI_DEV_GPU_TEMP{{{labels.rstrip(', ')}}} {value!r}{timestamp}"
    if (
        not line.isascii() or "\r" in line
    ):  # it also splits lines at letters that are no line ends here
        return
    (family,) = text_string_to_metric_families(line + "\n")
    (sample,) = family.samples
    found = parse_line(line)
    assert (found.name, found.labels, found.value) == (sample.name, sample.labels, sample.value)
