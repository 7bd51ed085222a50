"""`barnabas telemetry evaluate`: compute precision and recall of the findings in a lake."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import Json
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from barnabas.telemetry.findings.evaluation import Label, Reported, Score

HELP = "Compare the findings in a lake with labels, and show precision and recall of each."
EPILOG = (
    "Examples: barnabas telemetry evaluate --labels truth.jsonl --lake lake ; "
    "barnabas telemetry evaluate --phases phases.csv --lake lake --json"
)


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("evaluate", help=HELP, epilog=EPILOG)(evaluate)


def evaluate(
    *,
    lake: Annotated[Path, typer.Option(help="The directory of the tables.")],
    labels: Annotated[
        Path | None, typer.Option(help="The labels, as `simulate --labels` writes them.")
    ] = None,
    phases: Annotated[
        Path | None, typer.Option(help="The phases of a recording: phase,start_unix,end_unix.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="The GPU of the phases, if the lake has several.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Seconds at the edges of a label that do not count.")
    ] = 10.0,
    as_json: Json = False,
) -> None:
    """Print a row for each finding."""
    with needs_extra("telemetry"):
        from barnabas.telemetry.findings import evaluation
        from barnabas.telemetry.findings.thresholds import Thresholds

        for table in ("findings", "gold_10s"):
            if not (lake / table).is_dir():
                raise CommandError(f"{lake} has no table {table}; --lake names the pipeline's lake")
        reported, windows = evaluation.read_lake(lake)
        truth = _truth(labels, phases, gpu, reported)
        if phases is not None:
            chosen = {each.gpu_id for each in truth}
            reported = [each for each in reported if each.gpu_id in chosen]
        intervals_s = evaluation.read_intervals(lake)
        scores = evaluation.evaluate(truth, reported, windows, Thresholds(), tolerance, intervals_s)
    _print(scores, tolerance, as_json=as_json)


def _truth(
    labels: Path | None, phases: Path | None, gpu: str | None, reported: "list[Reported]"
) -> "list[Label]":
    from barnabas.telemetry.findings import evaluation

    try:
        if labels is not None and phases is None:
            return evaluation.read_labels(labels)
        if phases is not None and labels is None:
            return evaluation.read_phases(phases, gpu or _only_gpu(reported))
    except evaluation.LabelError as error:
        raise CommandError(str(error)) from error
    raise CommandError("Pass the labels: either --labels FILE or --phases FILE")


def _only_gpu(reported: "list[Reported]") -> str:
    found = {each.gpu_id for each in reported}
    if len(found) != 1:
        raise CommandError(f"The lake has findings of {len(found)} GPUs; name one with --gpu")
    return found.pop()


def _print(scores: "list[Score]", tolerance_s: float, *, as_json: bool) -> None:
    if as_json:
        rates = ("precision", "recall", "episode_recall")
        print_json(
            [asdict(each) | {name: getattr(each, name) for name in rates} for each in scores]
        )
        return
    titles = ("FINDING", "PRECISION", "RECALL", "EPISODES", "RIGHT", "WRONG", "DUE", "MET")
    rows = [
        (
            each.finding,
            _rate(each.precision),
            _rate(each.recall),
            f"{each.episodes_met}/{each.episodes}",
            each.right,
            each.wrong,
            each.due,
            each.met,
        )
        for each in scores
    ]
    print_table(titles, rows)
    say(f"By windows of one GPU; {tolerance_s:g} s at the edges of a label do not count.")
    for each in scores:
        if each.not_looked_for:
            say(
                f"{each.finding}: {each.not_looked_for} labels were not checked, because their "
                "GPUs are not sampled often enough."
            )


def _rate(share: float | None) -> str | None:
    return None if share is None else f"{share:.3f}"
