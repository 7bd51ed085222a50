"""Tests precision and recall on hand-made labels, and the command over a small lake."""

import json
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.telemetry.findings.evaluation import (
    Label,
    LabelError,
    Reported,
    Score,
    evaluate,
    read_labels,
    read_phases,
)
from barnabas.telemetry.findings.finding import us
from barnabas.telemetry.findings.thresholds import Thresholds

WINDOWS = [(us(10 * number), us(10 * number + 10)) for number in range(60)]


def label(finding: str, start_s: float, end_s: float, *, optional: bool = False) -> Label:
    return Label("GPU-1", finding, us(start_s), us(end_s), optional)


def reported(finding: str, *numbers: int, gpu: str = "GPU-1") -> list[Reported]:
    return [Reported(gpu, finding, *WINDOWS[number]) for number in numbers]


def score(labels: list[Label], reports: list[Reported]) -> Score:
    (only,) = evaluate(labels, reports, WINDOWS, Thresholds())
    return only


def test_windows_inside_a_label_are_due_and_its_edges_are_not() -> None:
    found = score([label("idle", 100, 200)], reported("idle", *range(11, 17)))
    assert (found.due, found.met, found.right, found.wrong) == (8, 6, 6, 0)
    assert found.recall == 0.75
    assert found.precision == 1.0


def test_a_report_at_the_edge_is_no_error_and_one_far_off_is() -> None:
    found = score([label("idle", 100, 200)], reported("idle", 9, 20, 22))
    assert (found.right, found.wrong) == (2, 1)


def test_a_report_of_another_card_is_wrong() -> None:
    found = score([label("idle", 100, 200)], reported("idle", 12, gpu="GPU-2"))
    assert (found.right, found.wrong, found.episodes_met) == (0, 1, 0)


def test_an_optional_label_may_be_left_out() -> None:
    found = score([label("idle", 100, 200, optional=True)], reported("idle", 12))
    assert (found.due, found.episodes, found.precision, found.recall) == (0, 0, 1.0, None)


def test_events_have_episodes_and_no_windows() -> None:
    found = score([label("xid", 105, 106), label("xid", 305, 306)], reported("xid", 10))
    assert (found.due, found.recall, found.episode_recall) == (0, None, 0.5)


def test_a_card_is_missing_only_after_its_minute() -> None:
    found = score([label("missing", 100, 300)], reported("missing", *range(16, 30)))
    assert found.recall == 1.0
    assert score([label("missing", 100, 130)], reported("missing", 20)).episodes == 0


def test_what_lies_beyond_the_closed_windows_is_not_due() -> None:
    found = score([label("idle", 100, 10_000)], reported("idle", *range(11, 60)))
    assert found.recall == 1.0


def test_labels_are_read_as_simulate_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    path.write_text(
        '{"gpu_id":"G","finding":"xid","start":"1970-01-01T00:00:01.500Z",'
        '"end":"1970-01-01T00:00:02Z","detail":{},"optional":true}\n'
        '{"gpu_id":"G","state":"idle","start":"x","end":"y"}\n'
    )
    assert read_labels(path) == [Label("G", "xid", us(1.5), us(2), True)]
    path.write_text('{"gpu_id":"G","finding":"xid"}\n')
    with pytest.raises(LabelError, match="line 1: wanted gpu_id, finding, start and end"):
        read_labels(path)


def test_phases_become_labels(tmp_path: Path) -> None:
    path = tmp_path / "phases.csv"
    path.write_text("phase,start_unix,end_unix\nmemory_held_idle,100,120\ntrain_steady,120,150\n")
    assert {(each.finding, each.start) for each in read_phases(path, "G")} == {
        ("idle", us(100)),
        ("parked_memory", us(100)),
    }
    path.write_text("phase,start_unix,end_unix\nnap,1,2\n")
    with pytest.raises(LabelError, match="unknown phase 'nap'"):
        read_phases(path, "G")


def test_phases_of_the_recorder_are_distinguished_by_their_bottleneck(tmp_path: Path) -> None:
    path = tmp_path / "phases.csv"
    path.write_text(
        "phase,bound,start_unix,end_unix,steps\nidle,idle,0,10,1\ntriad,memory,10,20,1\n"
        "upload,pcie,20,30,1\nheld,idle,30,40,1\nmatmul_fp32,compute,40,50,1\n"
    )
    found = read_phases(path, "G")
    duties = [(each.finding, each.start) for each in found if not each.is_optional]
    assert duties == [
        ("idle", us(0)),
        ("memory_bound", us(10)),
        ("pcie_bound", us(20)),
        ("idle", us(30)),
        ("parked_memory", us(30)),
    ]
    optional = [(each.finding, each.start) for each in found if each.is_optional]
    assert optional == [("power_capped", us(10)), ("power_capped", us(40))]
    path.write_text("phase,bound,start_unix,end_unix\nx,magnetism,1,2\n")
    with pytest.raises(LabelError, match="unknown bound 'magnetism'; known are idle"):
        read_phases(path, "G")


def write_lake(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    time = pa.timestamp("us", tz="UTC")
    starts, ends = (pa.array(column).cast(time) for column in zip(*WINDOWS, strict=True))
    gold = pa.table({"window_start": starts, "window_end": ends})
    findings = gold.slice(10, 10)
    for name, values in {"gpu_id": ["GPU-1"] * 10, "finding": ["idle"] * 10}.items():
        findings = findings.append_column(name, pa.array(values))
    for table, rows in {"gold_10s": gold, "findings": findings}.items():
        (folder / table).mkdir(parents=True)
        pq.write_table(rows, folder / table / "batch-0000000000.parquet")


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = 0
    try:
        main(["telemetry", "evaluate", *map(str, words)])
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_command_prints_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lake(tmp_path / "lake")
    phases = tmp_path / "phases.csv"
    phases.write_text("phase,start_unix,end_unix\nidle,100,200\ntrain_steady,200,500\n")
    code, out, _ = run(capsys, "--lake", tmp_path / "lake", "--phases", phases, "--json")
    assert code == 0
    (row,) = json.loads(out)
    assert (row["finding"], row["precision"], row["recall"]) == ("idle", 1.0, 1.0)
    code, out, _ = run(capsys, "--lake", tmp_path / "lake", "--phases", phases)
    assert "PRECISION" in out
    assert "1.000" in out


def test_the_command_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "--lake", tmp_path)
    assert (code, "has no table findings" in err) == (1, True)
    write_lake(tmp_path / "lake")
    code, _, err = run(capsys, "--lake", tmp_path / "lake")
    assert (code, "--labels FILE or --phases FILE" in err) == (1, True)


def test_a_finding_that_needs_finer_samples_than_a_card_has_is_not_due() -> None:
    labels = [label("starved", 100, 200), label("idle", 300, 400)]
    starved, idle = reversed(
        evaluate(labels, [], WINDOWS, Thresholds(), intervals_s={"GPU-1": 30.0})
    )
    assert (starved.due, starved.episodes, starved.not_looked_for) == (0, 0, 1)
    assert (idle.due, idle.episodes, idle.not_looked_for) == (8, 1, 0)
    fine = evaluate(labels, [], WINDOWS, Thresholds(), intervals_s={"GPU-1": 2.1})
    assert [(each.due, each.not_looked_for) for each in fine] == [(8, 0), (8, 0)]
