"""Chooses the report's advice: the most important findings as a few sentences.

Cards that endanger results come before cards that waste money; within those, advice about single
cards comes before advice about usage.
"""

from collections.abc import Callable, Iterable

from barnabas.telemetry.report.report_model import Named, Report, Sentence
from barnabas.telemetry.report.report_wording import duration, money, plural, short_gpu

FINDINGS_STATE = "_checkpoints/findings, _batches/findings, _batches/alerts and alerts"
"""The folder of the findings job in the lake, beside its table."""


def advice(report: Report) -> list[Sentence]:
    """Return the sentences, most urgent first."""
    rules: tuple[Callable[[Report], Sentence | None], ...] = (
        _without_findings,
        _drain,
        _find_missing,
        _set_clocks,
        _replace,
        _cool,
        _stragglers,
        _starved,
        _links,
        _idle,
        _capped,
    )
    found = [sentence for rule in rules if (sentence := rule(report)) is not None]
    return found or [
        Sentence(
            "good", "Nothing asks for action: no findings that cost money or results.", "fleet"
        )
    ]


def _without_findings(report: Report) -> Sentence | None:
    """Return the sentence for a lake without the table of findings: there is no result."""
    if "findings" not in report.missing_tables:
        return None
    run = f"`barnabas telemetry run --lake {report.folder}`"
    if "findings" in report.lost_tables:
        text = (
            f"The table findings is missing from {report.folder}, though the jobs have written it: "
            "this report knows of no finding. Restore its folder from a backup, or remove "
            f"{FINDINGS_STATE} of the lake and start {run}, which finds everything again."
        )
        return Sentence("critical", text, "quality")
    text = (
        f"There is no table findings in {report.folder} yet: this report knows of no finding. "
        f"Start {run}, or wait until its first windows close."
    )
    return Sentence("warning", text, "quality")


def _drain(report: Report) -> Sentence | None:
    grave = report.named["drain"]
    if not grave.total:
        return None
    hosts = _listed((f"{host} (XID {codes})" for host, _, codes in grave.first), grave.total)
    return Sentence("critical", f"Drain {hosts}: these XIDs mean a reset or a repair.", "xids")


def _find_missing(report: Report) -> Sentence | None:
    gone = report.named["gone"]
    if not gone.total:
        return None
    verb = "is" if gone.total == 1 else "are"
    text = f"Find {_cards(gone)}: {plural(gone.total, 'card')} {verb} silent at the end."
    return Sentence("critical", text, "missing")


def _set_clocks(report: Report) -> Sentence | None:
    wrong = report.named["clock"]
    if not wrong.total:
        return None
    named = (f"{host or short_gpu(gpu)} ({skew} s)" for host, gpu, skew in wrong.first)
    text = (
        f"Set the clock of {_listed(named, wrong.total)}: its samples are refused or counted "
        "at a wrong time."
    )
    return Sentence("warning", text, "findings")


def _replace(report: Report) -> Sentence | None:
    worn, repeating = report.named["worn"], report.named["repeating"]
    parts = []
    if worn.total:
        parts.append(f"test the memory of {_cards(worn)}, where ECC errors grow")
    if repeating.total:
        parts.append(f"look into {_cards(repeating)}, where XIDs come again and again")
    if not parts:
        return None
    text = "; ".join(parts)
    return Sentence("warning", text[0].upper() + text[1:] + ".", "ecc" if worn.total else "xids")


def _cool(report: Report) -> Sentence | None:
    hot = report.named["hot"]
    if not hot.total:
        return None
    seconds = duration(report.throttled_total.thermal_seconds)
    return Sentence(
        "warning",
        f"Check air flow and fans around {_cards(hot)}: heat slowed cards down for {seconds}.",
        "throttling",
    )


def _stragglers(report: Report) -> Sentence | None:
    slow = report.named["slow"]
    if not slow.total:
        return None
    return Sentence(
        "warning",
        f"Move jobs off {_cards(slow)}: every peer in a synchronous job waits for its slowest.",
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


def _links(report: Report) -> Sentence | None:
    waits = {
        link: report.finding_totals[finding]
        for finding, link in (("pcie_bound", "PCIe"), ("nvlink_bound", "NVLink"))
        if finding in report.finding_totals
    }
    if not waits:
        return None
    parts = (
        f"{plural(gpus, 'card')} waited for {link} in {duration(seconds)} of card time"
        for link, (gpus, _, seconds) in waits.items()
    )
    text = f"Move less data, or move it while the cards compute: {', '.join(parts)}."
    return Sentence("warning", text, "bottlenecks")


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
        f"Power caps held {plural(report.finding_totals['power_capped'][0], 'card')} back for "
        f"{duration(total.power_seconds)}; raise the limit where rack and cooling allow, or leave "
        "it: capped cards are busy ones.",
        "throttling",
    )


def _cards(named: Named) -> str:
    return _listed((f"{short_gpu(gpu)} on {host}" for host, gpu, _ in named.first), named.total)


def _listed(names: Iterable[str], total: int) -> str:
    """Join a few names, and count the rest."""
    known = list(names)
    if total > len(known):
        return f"{', '.join(known)} and {total - len(known):,} more"
    return " and ".join(filter(None, (", ".join(known[:-1]), known[-1])))
