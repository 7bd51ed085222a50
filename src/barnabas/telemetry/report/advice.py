"""What to do first: the report's findings as a handful of sentences.

Cards that endanger results come before cards that waste money; within those, the sentence that
names a card comes before the one that names a habit.
"""

from collections.abc import Callable, Iterable

from barnabas.telemetry.report.model import STILL_S, Report, Sentence
from barnabas.telemetry.report.wording import duration, money, plural, short_gpu

NAMED = 3


def advice(report: Report) -> list[Sentence]:
    """Return the sentences, most urgent first."""
    rules: tuple[Callable[[Report], Sentence | None], ...] = (
        _drain,
        _find_missing,
        _replace,
        _cool,
        _stragglers,
        _starved,
        _idle,
        _capped,
    )
    found = [sentence for rule in rules if (sentence := rule(report)) is not None]
    return found or [
        Sentence(
            "good", "Nothing asks for action: no findings that cost money or results.", "fleet"
        )
    ]


def _drain(report: Report) -> Sentence | None:
    grave = [each for each in report.xids if each.severity == "critical"]
    if not grave:
        return None
    hosts = _listed(f"{each.hostname} (XID {each.code})" for each in grave)
    return Sentence("critical", f"Drain {hosts}: these XIDs mean a reset or a repair.", "xids")


def _find_missing(report: Report) -> Sentence | None:
    end_s = report.fleet.end_s
    gone = [each for each in report.absences if each.end_s >= end_s - STILL_S]
    if not gone:
        return None
    names = _listed(f"{short_gpu(each.gpu_id)} on {each.hostname}" for each in gone)
    verb = "is" if len(gone) == 1 else "are"
    text = f"Find {names}: {plural(len(gone), 'card')} {verb} silent at the end of the report."
    return Sentence("critical", text, "missing")


def _replace(report: Report) -> Sentence | None:
    worn = [short_gpu(each.gpu_id) + " on " + each.hostname for each in report.ecc]
    repeat = [
        f"{short_gpu(each.gpu_id)} on {each.hostname}"
        for each in report.offenders
        if "repeat_offender" in each.kinds
    ]
    parts = []
    if worn:
        parts.append(f"test the memory of {_listed(worn)}, where corrected errors grow")
    if repeat:
        parts.append(f"look into {_listed(repeat)}, where XIDs come again and again")
    if not parts:
        return None
    text = "; ".join(parts)
    return Sentence("warning", text[0].upper() + text[1:] + ".", "ecc" if worn else "xids")


def _cool(report: Report) -> Sentence | None:
    hot = [each for each in report.throttling if each.thermal_seconds > 0]
    if not hot:
        return None
    names = _listed(dict.fromkeys(each.hostname for each in hot))
    seconds = duration(report.throttled_total.thermal_seconds)
    return Sentence(
        "warning",
        f"Check air flow and fans of {names}: cards slowed down from heat for {seconds}.",
        "throttling",
    )


def _stragglers(report: Report) -> Sentence | None:
    slow = report.stragglers
    if not slow:
        return None
    names = _listed(f"{short_gpu(each.gpu_id)} on {each.hostname}" for each in slow)
    return Sentence(
        "warning",
        f"Move jobs off {names}: every peer in a synchronous job waits for its slowest card.",
        "stragglers",
    )


def _starved(report: Report) -> Sentence | None:
    gpus, _, seconds = report.finding_totals.get("starved", (0, 0, 0.0))
    if not gpus:
        return None
    return Sentence(
        "warning",
        f"Speed up the input of training jobs: {plural(gpus, 'card')} waited for data in "
        f"{duration(seconds)} of card time.",
        "findings",
    )


def _idle(report: Report) -> Sentence | None:
    if not report.waste["all"]:
        return None
    whole = report.waste["all"][0]
    first = report.waste["namespace"][0]
    cost = money(whole.energy_cost + whole.card_cost, report.wish.currency)
    most = first.name if first.name != "(none)" else report.waste["host"][0].name
    text = (
        f"Give back idle cards, {most} first: {duration(3600 * whole.idle_hours)} of idle card "
        f"time cost {cost}"
    )
    if whole.parked_hours > 0:
        text += f", {duration(3600 * whole.parked_hours)} of it with memory parked"
    return Sentence("info", text + ".", "waste")


def _capped(report: Report) -> Sentence | None:
    total = report.throttled_total
    if total.power_seconds <= 0 or total.seconds_lost is None:
        return None
    return Sentence(
        "info",
        f"Power caps held {plural(int(total.gpu_id), 'card')} back for "
        f"{duration(total.power_seconds)}; raise the limit where rack and cooling allow, or leave "
        "it: capped cards are busy ones.",
        "throttling",
    )


def _listed(names: Iterable[str]) -> str:
    """Join a few names, and count the rest."""
    known = list(dict.fromkeys(names))
    if len(known) <= NAMED:
        return " and ".join(filter(None, (", ".join(known[:-1]), known[-1])))
    return f"{', '.join(known[:NAMED])} and {len(known) - NAMED} more"
