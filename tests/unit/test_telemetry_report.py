"""Tests the content of a report, against the stories of which the lakes were made."""

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")

from barnabas.telemetry.lake.lake_reading import Lake, LakeError
from barnabas.telemetry.report import questions
from barnabas.telemetry.report.drawing import runs_of, time_ticks
from barnabas.telemetry.report.gathering import gather
from barnabas.telemetry.report.picture import colour, data_uri
from barnabas.telemetry.report.report_model import STATES, Report, Wish
from barnabas.telemetry.report.report_page import page
from barnabas.telemetry.report.report_wording import duration, energy, money
from barnabas.telemetry.report.summary import document, sampling_lines
from tests.support.pipelines.lake import NUMBERS, START, Story, fleet_of, h200, story, write_lake

START_S = START.timestamp()

Make = Callable[..., Report]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """Writes stories and reports on them."""

    def make(stories: list[Story], samples: int = 0, **wish: object) -> Report:
        folder = write_lake(tmp_path / "lake", stories, samples_per_window=samples)
        return gather(Lake(folder), Wish(**wish))  # type: ignore[arg-type]

    return make


def test_neighbouring_windows_are_one_episode(made: Make) -> None:
    one = story(1, 60).during("starved", 5, 10).during("starved", 11, 12).during("idle", 40, 60)
    report = made([one])
    episodes = [
        (each.finding, each.start_s - START_S, each.end_s - START_S, each.windows)
        for each in report.timelines[0].episodes
    ]
    assert episodes == [("starved", 50, 100, 5), ("starved", 110, 120, 1), ("idle", 400, 600, 20)]
    assert report.finding_totals["starved"] == (1, 2, 60.0)


@pytest.mark.parametrize(
    ("is_noted", "severity", "text"),
    [
        (True, "critical", "The table findings is missing from "),
        (False, "warning", "There is no table findings in "),
    ],
)
def test_without_findings_the_report_says_so_and_what_to_do(
    tmp_path: Path, is_noted: bool, severity: str, text: str
) -> None:
    folder = write_lake(tmp_path / "lake", [story(1, 60).during("idle", 0, 60)])
    shutil.rmtree(folder / "findings")
    if is_noted:
        note = folder / "_batches" / "findings" / "batch-0000000000.json"
        note.parent.mkdir(parents=True)
        note.write_text('{"query": "q", "batch": 0, "rows": 60}')
    [sentence] = gather(Lake(folder), Wish()).advice
    assert sentence.severity == severity
    assert sentence.text.startswith(f"{text}{folder}")
    assert f"`barnabas telemetry run --lake {folder}`" in sentence.text
    assert "Nothing asks for action" not in page(gather(Lake(folder), Wish()))


def test_a_wrong_clock_is_named_with_its_host(tmp_path: Path) -> None:
    one = story(1, 60)
    folder = write_lake(tmp_path / "lake", [one])
    findings = pq.read_table(next((folder / "findings").glob("*.parquet")))
    start = START.astimezone(UTC)
    row: dict[str, object] = {"window_start": start, "window_end": start + timedelta(seconds=10)}
    row |= {"gpu_id": one.gpu_id, "hostname": one.hostname, "finding": "clock_skew"}
    row |= {"severity": "warning", "value": -70.0, "unit": "s", "seconds": 10.0, "detail": "d"}
    added = pa.Table.from_pylist([row], schema=findings.schema)
    pq.write_table(added, folder / "findings" / "batch-0000000099.parquet")
    report = gather(Lake(folder), Wish())
    [sentence] = [each for each in report.advice if "clock" in each.text]
    assert f"Set the clock of {one.hostname} (-70 s)" in sentence.text
    assert "Wrong clock" in page(report)


def test_instances_of_a_split_card_are_shown(tmp_path: Path) -> None:
    one = story(1, 60)
    folder = write_lake(tmp_path / "lake", [one])
    before = gather(Lake(folder), Wish())
    assert "MIG instances" not in page(before)
    gold = pq.read_table(next((folder / "gold_10s").glob("*.parquet")))
    [window] = gold.slice(0, 1).to_pylist()
    rows = [
        {**window, "level": "instance", "instance": str(number), "profile": "1g.10gb", "gpus": 0}
        | {"pod": f"pod-{number}", "gpu_util_mean": util, "fb_used_mean": 2048.0}
        | {"util_idle_share": 1.0 if util == 0 else 0.0, "energy_joules": None}
        for number, util in ((3, 90.0), (11, 0.0))
    ]
    added = pa.Table.from_pylist(rows, schema=gold.schema)
    pq.write_table(added, folder / "gold_10s" / "batch-0000000099.parquet")
    report = gather(Lake(folder), Wish())
    assert report.fleet == before.fleet
    busy, idle = report.instances
    assert (busy.instance, busy.pod, busy.util_mean) == ("3", "pod-3", 90)
    assert (idle.instance, idle.idle_share, idle.memory_gib) == ("11", 1, 2)
    text = page(report)
    assert "MIG instances" in text
    assert "pod-11" in text
    assert document(report)["instances"][1]["profile"] == "1g.10gb"


def test_two_xids_side_by_side_are_two_episodes(made: Make) -> None:
    one = story(1, 30)
    one.xids = {3: 13, 4: 31}
    report = made([one])
    assert [(each.code, each.times) for each in report.xids] == [(13, 1), (31, 1)]


def test_every_gpu_second_has_one_state(made: Make) -> None:
    stories = fleet_of(24, windows=360, seed=3)
    for number, bound in enumerate(("memory_bound", "pcie_bound", "nvlink_bound")):
        stories[number].during(bound, 100, 130 + number)
    report = made(stories)
    labels = {"memory_bound": "working", "pcie_bound": "link_bound", "nvlink_bound": "link_bound"}
    labels |= {"parked_memory": "parked", "power_capped": "throttled"}
    labels |= {"thermal_throttled": "throttled", "straggler": "working"}
    told = dict.fromkeys(STATES, 0)
    for name, number in NUMBERS.items():
        told[labels.get(name, name)] += 10 * sum(int((s.states == number).sum()) for s in stories)
    assert {state: sum(report.shares.counts[state]) for state in STATES} == told


def test_the_map_shows_what_each_gpu_did_most(made: Make) -> None:
    busy, lost = story(1, 300), story(2, 300).during("missing", 150, 300)
    report = made([busy, lost])
    ids = [gpu_id for _, gpu_id in report.map.gpus]
    cells = dict(zip(ids, report.map.cells, strict=True))
    assert set(cells[busy.gpu_id]) == {STATES.index("working")}
    half = len(cells[lost.gpu_id]) // 2
    assert set(cells[lost.gpu_id][half + 1 :]) == {STATES.index("missing")}
    assert report.map.left_out == 0


def test_a_parked_card_wastes_its_energy_once(made: Make) -> None:
    parked = story(1, 360, "notebooks", "parked_memory")
    idle = story(9, 360, "empty", "idle")
    report = made([parked, idle], price_per_kwh=2.0, price_per_gpu_hour=10.0)
    (whole,) = report.waste["all"]
    assert whole.idle_hours == pytest.approx(2.0)
    assert whole.parked_hours == pytest.approx(1.0)
    assert whole.kwh == pytest.approx((121 + 78) / 1000)
    assert whole.energy_cost == pytest.approx(2 * whole.kwh)
    assert whole.card_cost == pytest.approx(20.0)
    assert [each.name for each in report.waste["namespace"]] == ["empty", "notebooks"]
    assert [each.name for each in report.waste["host"]] == ["node-0000", "node-0001"]
    held = {each.name: each.parked_gib for each in report.waste["gpu"]}
    assert held[parked.gpu_id] == pytest.approx(0.74 * 143_771 / 1024, rel=1e-3)
    assert held[idle.gpu_id] == 0


def test_throttling_is_reported_in_seconds_and_clock(made: Make) -> None:
    report = made([story(1, 60, state="power_capped"), story(2, 60, state="thermal_throttled")])
    by_gpu = {each.gpu_id: each for each in report.throttling}
    capped, hot = by_gpu[story(1, 1).gpu_id], by_gpu[story(2, 1).gpu_id]
    assert (capped.power_seconds, capped.thermal_seconds) == (600, 0)
    assert (hot.power_seconds, hot.thermal_seconds) == (0, 600)
    assert capped.clock_lost_pct == pytest.approx(100 * (1 - 1490 / 1980), abs=1)
    assert hot.seconds_lost == pytest.approx(600 * (1 - 1215 / 1980), rel=0.05)
    assert report.throttling[0] == hot


def test_time_and_gpu_cut_everything(made: Make) -> None:
    one, other = story(1, 360).during("idle", 0, 60), story(2, 360).during("idle", 180, 360)
    report = made(
        [one, other], gpu_id=other.gpu_id[-6:], start_s=START_S + 1700, end_s=START_S + 2000
    )
    assert report.fleet.gpus == 1
    assert (report.fleet.start_s, report.fleet.end_s) == (START_S + 1700, START_S + 2000)
    assert report.finding_totals == {"idle": (1, 1, 200.0)}
    assert [each.gpu_id for each in report.timelines] == [other.gpu_id]


def test_short_times_are_drawn_from_samples(made: Make) -> None:
    report = made(h200(), samples=100)
    (only,) = report.timelines
    assert only.source == "samples"
    assert len(only.times_s) > len(h200()[0].states)
    assert [each.name for each in only.series] == [
        "Utilisation",
        "Power",
        "SM clock",
        "Memory",
        "Temperature",
    ]


def test_bottlenecks_are_reported_by_job_and_no_card_is_an_offender_by_them(made: Make) -> None:
    stories = [
        *(story(number, 60, "vision", "pcie_bound") for number in range(2)),
        story(8, 60, "speech").during("memory_bound", 0, 30),
        story(16, 60, "speech").during("nvlink_bound", 0, 12),
    ]
    report = made(stories)
    told = [(e.finding, e.namespace, e.hostname, e.gpus, e.seconds) for e in report.bottlenecks]
    assert told == [
        ("pcie_bound", "vision", "node-0000", 2, 1200.0),
        ("nvlink_bound", "speech", "node-0002", 1, 120.0),
        ("memory_bound", "speech", "node-0001", 1, 300.0),
    ]
    assert report.offenders == []
    (sentence,) = [each for each in report.advice if each.anchor == "bottlenecks"]
    assert "2 cards waited for PCIe in 20 min" in sentence.text
    assert "1 card waited for NVLink in 2 min" in sentence.text
    shown = page(report)
    assert "move less between host and card" in shown
    assert "not been proven on recordings of real cards" in shown
    assert [each["gpus"] for each in document(report)["bottlenecks"]] == [2, 1, 1]


def test_advice_begins_with_what_endangers_results(made: Make) -> None:
    fallen = story(1, 60).during("missing", 20, 60)
    fallen.xids = {19: 79}
    stories = [fallen, story(2, 60, state="idle"), story(3, 60, state="thermal_throttled")]
    texts = [each.text for each in made(stories).advice]
    assert [text.split()[0] for text in texts] == ["Drain", "Find", "Check", "Give"]
    assert "node-0000 (XID 79)" in texts[0]


def test_advice_counts_more_cards_than_it_names(made: Make) -> None:
    stories = [story(gpu, 20).during("missing", 5, 20) for gpu in range(40)]
    (only,) = [each for each in made([*stories, story(99, 20)]).advice if "Find" in each.text]
    assert "and 37 more: 40 cards are silent" in only.text


def test_no_problem_is_reported(made: Make) -> None:
    report = made([story(1, 60)])
    assert [each.severity for each in report.advice] == ["good"]
    assert "No card idled" in page(report)


def test_large_fleets_are_cut_and_say_so(made: Make) -> None:
    stories = [story(gpu, 3) for gpu in range(400)]
    stories[399].during("missing", 1, 3)
    report = made(stories)
    assert report.map.left_out == 400 - 128
    assert stories[399].gpu_id in [gpu_id for _, gpu_id in report.map.gpus]
    assert "272 are left out" in page(report)


@pytest.mark.parametrize("gone", ["gold_10s", "gold_1m", "findings", "alerts"])
def test_a_partial_lake_gives_a_page(tmp_path: Path, gone: str) -> None:
    folder = write_lake(tmp_path, fleet_of(8, windows=1000, seed=1))
    shutil.rmtree(folder / gone)
    report = gather(Lake(folder), Wish())
    assert report.missing_tables == ["bronze", "silver", gone] or gone in report.missing_tables
    assert report.fleet.gpus == 8
    assert gone in page(report)


def test_a_time_without_data_says_where_there_is_some(made: Make) -> None:
    with pytest.raises(LakeError, match="2026-11-14 00:00:00Z to 2026-11-14 00:10:00Z"):
        made([story(1, 60)], start_s=0.0, end_s=1000.0)
    with pytest.raises(LakeError, match="fits 2 GPUs"):
        made([story(1, 60), story(2, 60)], gpu_id="GPU-")
    with pytest.raises(LakeError, match="There is no GPU nobody"):
        made([story(1, 60)], gpu_id="nobody")


class Loads(HTMLParser):
    """Collects what a browser would fetch, and checks that elements are closed."""

    VOID = frozenset({"meta", "link", "img", "source", "br", "line", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "srcset", "href", "data", "action", "poster"):
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")
            if name == "href" and (value or "").startswith("#"):
                self.targets.append((value or "")[1:])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(made: Make) -> None:
    text = page(made(fleet_of(24, windows=720, seed=3)))
    loads = Loads()
    loads.feed(text)
    assert loads.open == []
    assert all(address.startswith(("#", "data:")) for address in loads.addresses)
    without_pictures = re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    assert not re.search(r"https?://|//[a-z]|@import|url\(|fetch\(|XMLHttp", without_pictures)
    assert set(loads.targets) <= set(loads.ids)
    assert len(loads.ids) == len(set(loads.ids))
    assert len(text) < 1_500_000


def test_names_cannot_break_the_page(made: Make) -> None:
    one, two = story(1, 60).during("idle", 0, 30), story(2, 60).during("starved", 0, 30)
    one.hostname = '</script><script>alert("x")</script>'
    one.namespace = two.hostname = '"><img src=x onerror=alert(1)>'
    report = made([one, two], title="<b>mine</b>")
    text = page(report)
    assert "<script>alert" not in text.lower()
    assert "<img src=x" not in text
    assert "<b>mine" not in text
    found = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    assert any(one.hostname in row for row in json.loads(found[1])["map"]["rows"])


def test_the_document_is_json(made: Make) -> None:
    text = json.dumps(document(made(fleet_of(16, windows=360, seed=2))))
    found = json.loads(text)
    assert found["fleet"]["gpus"] == 16
    assert found["from"] == "2026-11-14T00:00:00Z"
    assert found["missing"][0]["start"].endswith("Z")


def test_pictures_and_lines() -> None:
    uri = data_uri([[0, 1, -1], [1, 1, 0]], [colour("#000000"), colour("#ffffff")])
    assert uri.startswith("data:image/png;base64,iVBOR")
    gap = runs_of([0, 10, 20, 100, 110], [1.0, 2.0, None, 1.0, 1.0], 2.0, 25)
    assert [len(run) for run in gap] == [2, 2]
    assert time_ticks(START_S, START_S + 290) == [START_S + 60 * k for k in range(5)]
    assert questions.step_for(86_400, 288) == 300
    assert np.diff(time_ticks(START_S, START_S + 30 * 86_400)).min() >= 86_400


def test_wording() -> None:
    assert [duration(each) for each in (9.6, 61, 3600, 90_000)] == [
        "10 s",
        "1 min 1 s",
        "1 h",
        "1 d 1 h",
    ]
    assert (money(1234.5, "$"), money(0.5, "EUR")) == ("$1,234", "0.50 EUR")
    assert (energy(0.0123), energy(12.34), energy(0)) == ("12.3 Wh", "12.3 kWh", "0 kWh")


def lake_with(folder: Path, **columns: float | None) -> Path:
    """Write a lake of one card that works, with some given columns of gold."""
    write_lake(folder, [story(1, 60)])
    for file in [*folder.glob("gold_*/*.parquet")]:
        rows = pq.read_table(file)
        for name, value in columns.items():
            index = rows.schema.get_field_index(name)
            values = pa.array([value] * rows.num_rows, pa.float64())
            rows = rows.set_column(index, name, values)
        pq.write_table(rows, file)
    return folder


def test_time_is_what_samples_stand_for(tmp_path: Path) -> None:
    report = gather(Lake(lake_with(tmp_path, covered_seconds=5.0)), Wish())
    assert report.fleet.gpu_hours == pytest.approx(60 * 5 / 3600)
    assert sum(report.shares.counts["working"]) == pytest.approx(60 * 5)
    assert report.quality.coverage_pct == pytest.approx(50)


def test_rows_of_version_0_1_stand_for_their_windows(tmp_path: Path) -> None:
    folder = lake_with(tmp_path)
    for file in folder.glob("gold_*/*.parquet"):
        pq.write_table(pq.read_table(file).drop_columns(["covered_seconds", "interval_s"]), file)
    report = gather(Lake(folder), Wish())
    assert report.fleet.gpu_hours == pytest.approx(600 / 3600)
    assert report.quality.not_looked_for == []


def test_the_report_says_what_needs_finer_samples(tmp_path: Path) -> None:
    report = gather(Lake(lake_with(tmp_path, interval_s=30.0)), Wish())
    text = "it needs samples every 2 s; this card was sampled every 30 s."
    assert [each.finding for each in report.quality.not_looked_for] == ["launch_bound", "starved"]
    assert sampling_lines(report)[1] == f"Starved was not looked for: {text}"
    assert text in page(report)
    assert document(report)["quality"]["not_looked_for"][1]["interval_s"] == 30.0
