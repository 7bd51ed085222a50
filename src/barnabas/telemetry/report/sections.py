"""The sections of the page that consist of text and tables."""

from collections.abc import Iterable, Sequence
from html import escape

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.report.plots import sparkline
from barnabas.telemetry.report.questions import TOP_ROWS
from barnabas.telemetry.report.report_model import (
    FINDINGS,
    STATE_OF,
    STILL_S,
    Offender,
    Report,
    Waste,
)
from barnabas.telemetry.report.report_wording import (
    NONE,
    duration,
    energy,
    moment,
    money,
    number,
    plural,
    short_gpu,
)
from barnabas.telemetry.report.sampling import sentence
from barnabas.telemetry.report.troubles import ECC_ROWS, OFFENDER_ROWS

SEEN_ROWS = 6
TIMES = " \N{MULTIPLICATION SIGN}"


def section(anchor: str, title: str, lead: str, body: str) -> str:
    """Return a section with its heading and one sentence under it."""
    return f'<section id="{anchor}"><h2>{title}</h2><p class="lead">{lead}</p>{body}</section>'


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[int] = ()) -> str:
    """Return a table; cells are HTML, numeric columns are right-aligned."""
    right = set(numeric)

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=n' if index in right else ''}>{cell}</{tag}>"
            for index, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    head = f"<thead><tr>{cells(titles, 'th')}</tr></thead>"
    return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'


def gpu(gpu_id: str) -> str:
    """Return a GPU's short name, with the full name as a tooltip."""
    return f'<code title="{escape(gpu_id)}">{escape(short_gpu(gpu_id))}</code>'


def chip(word: str, kind: str = "") -> str:
    """Return a word in a coloured frame."""
    return f'<span class="chip {kind}">{escape(word)}</span>'


def findings(report: Report) -> str:
    """Every finding with its extent."""
    rows = []
    for finding, label in FINDINGS.items():
        if finding in report.finding_totals:
            gpus, episodes, seconds = report.finding_totals[finding]
            mark = f'<i class="dot s-{STATE_OF.get(finding, "event")}"></i>'
            rows.append(
                (mark + label, number(gpus), number(episodes), duration(seconds), MEANING[finding])
            )
    notes = "".join(
        f'<p class="note">{sentence(each, report.fleet.gpus)}</p>'
        for each in report.quality.not_looked_for
    )
    if not rows:
        return section("findings", "Findings", "None: every card did what it should.", notes)
    lead = (
        f"{plural(sum(each[1] for each in report.finding_totals.values()), 'episode')} of "
        f"{plural(len(rows), 'kind')}. An episode is a finding that lasted through "
        "neighbouring windows of 10&nbsp;s."
    )
    titles = ("Finding", "GPUs", "Episodes", "Card time", "What it means")
    return section("findings", "Findings", lead, table(titles, rows, (1, 2, 3)) + notes)


MEANING = {
    "xid": "The driver reported an error; the code says whose.",
    "repeat_offender": "XIDs again and again on one card: look at the card, not at the job.",
    "missing": "The card stopped reporting.",
    "ecc_trend": "Corrected memory errors grow faster than chance.",
    "thermal_throttled": "Clocks were lowered because the card was too hot.",
    "power_capped": "Clocks were lowered to keep to the power limit.",
    "straggler": "Far behind its peers; a synchronous job waits for it.",
    "starved": "The job holds memory and waits for input.",
    "launch_bound": "Utilisation is high, power is low: launches, not work.",
    "pcie_bound": "PCIe is busy, the card waits: it moves data to or from the host.",
    "nvlink_bound": "NVLink is busy, the card waits: it exchanges data with other cards.",
    "memory_bound": "The card's own memory is busy, and the arithmetic waits for it.",
    "parked_memory": "Memory is held, nothing runs.",
    "idle": "Nothing runs.",
    "idle_instances": "The card works, some of its MIG instances do not.",
    "clock_skew": "The clock of the node is wrong; samples are refused or counted elsewhere.",
}


def instances(report: Report) -> str:
    """The MIG instances; nothing if no card is split."""
    if not report.instances:
        return ""
    rows = [
        (
            escape(each.hostname),
            gpu(each.gpu_id),
            escape(each.instance),
            escape(each.profile),
            escape("/".join(filter(None, (each.namespace, each.pod)))) or NONE,
            NONE if each.util_mean is None else f"{number(each.util_mean)} %",
            NONE if each.memory_gib is None else f"{number(each.memory_gib)} GiB",
            _activity(each.idle_share),
        )
        for each in report.instances
    ]
    titles = ("Host", "GPU", "Instance", "Profile", "Pod", "Utilisation", "Memory", "")
    lead = "Cards that are split by MIG. A card counts once in hours, energy and cost."
    return section("instances", "MIG instances", lead, folded(titles, rows, (5, 6)))


def _activity(idle_share: float | None) -> str:
    if idle_share is None:
        return NONE
    if idle_share >= Thresholds.idle_share:
        return chip("idle", "info")
    return f"idle {number(100 * idle_share)} % of the time" if idle_share > 0 else "works"


def waste(report: Report) -> str:
    """The cost of idle cards, by owner."""
    if not report.waste["all"]:
        return section("waste", "Waste", "No card idled through a window.", "")
    whole, wish = report.waste["all"][0], report.wish
    share = 100 * whole.idle_hours / report.fleet.gpu_hours if report.fleet.gpu_hours else 0.0
    lead = (
        f"{duration(3600 * whole.idle_hours)} of idle card time ({number(share)} % of all) used "
        f"<b>{energy(whole.kwh)}</b> and cost <b>"
        f"{money(whole.energy_cost + whole.card_cost, wish.currency)}</b>: energy at "
        f"{money(wish.price_per_kwh, wish.currency)} a kWh and cards at "
        f"{money(wish.price_per_gpu_hour, wish.currency)} an hour."
    )
    parts = [
        f"<h3>{title}</h3>"
        + _waste_table(title, report.waste[key], wish.currency, is_gpu=key == "gpu")
        for key, title in (("namespace", "By namespace"), ("host", "By host"), ("gpu", "By GPU"))
    ]
    return section("waste", "Waste", lead, "".join(parts))


def _waste_table(title: str, rows: list[Waste], currency: str, *, is_gpu: bool) -> str:
    titles = (
        title.removeprefix("By ").capitalize().replace("Gpu", "GPU"),
        "Host" if is_gpu else "GPUs",
        "Idle",
        "Memory parked",
        "Parked, mean",
        "Energy",
        "Energy cost",
        "Card cost",
        "Total",
    )
    cells = [
        (
            gpu(each.name) if is_gpu else escape(each.name),
            escape(each.hostname) if is_gpu else number(each.gpus),
            duration(3600 * each.idle_hours),
            duration(3600 * each.parked_hours) if each.parked_hours else NONE,
            f"{number(each.parked_gib)} GiB" if each.parked_gib else NONE,
            energy(each.kwh),
            money(each.energy_cost, currency),
            money(each.card_cost, currency),
            f"<b>{money(each.energy_cost + each.card_cost, currency)}</b>",
        )
        for each in rows
    ]
    return folded(titles, cells, range(2 if is_gpu else 1, 9))


def folded(
    titles: Sequence[str], rows: Sequence[Sequence[str]], numeric: Iterable[int] = ()
) -> str:
    """Return a table of which the first rows are shown; say if the list was truncated."""
    right = tuple(numeric)
    cut = note_of_cut(len(rows), TOP_ROWS)
    if len(rows) <= SEEN_ROWS + 2:
        return table(titles, rows, right) + cut
    rest = table(titles, rows[SEEN_ROWS:], right)
    return (
        f"{table(titles, rows[:SEEN_ROWS], right)}"
        f'<details class="fold"><summary>{len(rows) - SEEN_ROWS} more</summary>'
        f"{rest}{cut}</details>"
    )


def note_of_cut(rows: int, limit: int) -> str:
    """Return a note if a list has its maximum length."""
    where = "<code>barnabas telemetry query</code> has all"
    return f'<p class="note">Only the first {limit}; {where}.</p>' if rows >= limit else ""


def throttling(report: Report) -> str:
    """The lost seconds and clock speed."""
    total = report.throttled_total
    if not report.throttling:
        return section("throttling", "Throttling", "No card was throttled.", "")
    lost = (
        ""
        if total.seconds_lost is None
        else f", on average {number(total.clock_lost_pct)} % below the top clock: as if cards had "
        f"stood still for <b>{duration(total.seconds_lost)}</b>"
    )
    lead = (
        f"{plural(int(total.gpu_id), 'card')} ran below their clock: "
        f"<b>{duration(total.power_seconds)}</b> of card time under a power cap, "
        f"<b>{duration(total.thermal_seconds)}</b> too hot{lost}."
    )
    rows = [
        (
            escape(each.hostname or ""),
            gpu(each.gpu_id),
            duration(each.power_seconds) if each.power_seconds else NONE,
            duration(each.thermal_seconds) if each.thermal_seconds else NONE,
            f"{number(each.clock_lost_pct)} %" if each.clock_lost_pct is not None else NONE,
            duration(each.seconds_lost) if each.seconds_lost is not None else NONE,
            f"{number(each.hottest, 0)} °C" if each.hottest is not None else NONE,
        )
        for each in report.throttling
    ]
    titles = ("Host", "GPU", "Power cap", "Too hot", "Clock lost", "Time lost", "Hottest")
    body = folded(titles, rows, range(2, 7))
    return section("throttling", "Throttling", lead, body)


def stragglers(report: Report) -> str:
    """Stragglers, which slow down their peers."""
    if not report.stragglers:
        lead = "No card was far off its peers."
        return section("stragglers", "Stragglers", lead, "")
    rows = [
        (
            escape(each.hostname or ""),
            gpu(each.gpu_id),
            escape(each.namespace or ""),
            duration(each.seconds),
            number(each.episodes),
            NONE if each.value is None else f"{number(each.value)} {escape(each.unit or '')}",
            escape(each.detail or ""),
        )
        for each in report.stragglers
    ]
    titles = ("Host", "GPU", "Namespace", "Behind for", "Episodes", "Off by", "Detail")
    lead = "Cards far off the median of their peers in the same job or host."
    body = folded(titles, rows, (3, 4, 5))
    return section("stragglers", "Stragglers", lead, body)


def offenders(report: Report) -> str:
    """The cards that need attention."""
    if not report.offenders:
        return section("offenders", "Top offenders", "No card stands out.", "")
    rows = [
        (
            escape(each.hostname or ""),
            gpu(each.gpu_id),
            escape(each.namespace or ""),
            _kinds(each),
            duration(each.seconds),
        )
        for each in report.offenders
    ]
    lead = (
        "Cards by kinds of findings that point at hardware, then by time in trouble; "
        "idleness and power caps do not count."
    )
    titles = ("Host", "GPU", "Namespace", "Episodes", "In trouble")
    body = table(titles, rows, (4,)) + note_of_cut(len(rows), OFFENDER_ROWS)
    return section("offenders", "Top offenders", lead, body)


def _kinds(each: Offender) -> str:
    ordered = sorted(each.kinds.items(), key=lambda kind: list(FINDINGS).index(kind[0]))
    return " ".join(
        chip(f"{FINDINGS[name]}{TIMES}{count}" if count > 1 else FINDINGS[name], f"k-{name}")
        for name, count in ordered
    )


def xids(report: Report) -> str:
    """XIDs with their actions."""
    if not report.xids:
        return section("xids", "XIDs", "The driver reported no errors.", "")
    rows = [
        (
            f"<b>{each.code}</b>",
            chip(each.severity, each.severity),
            escape(each.hostname or ""),
            gpu(each.gpu_id),
            number(each.times),
            moment(each.first_s),
            moment(each.last_s) if each.times > 1 else NONE,
            escape(each.detail),
        )
        for each in report.xids
    ]
    titles = ("XID", "Severity", "Host", "GPU", "Times", "First", "Last", "What to do")
    lead = "Errors that the driver reported, those that ask for a drain first."
    return section("xids", "XIDs", lead, folded(titles, rows, (0, 4)))


def ecc(report: Report) -> str:
    """Memory that wears out."""
    if not report.ecc:
        return section("ecc", "ECC trend", "No card corrects memory errors at a growing rate.", "")
    rows = [
        (
            escape(each.hostname or ""),
            gpu(each.gpu_id),
            sparkline(each.corrected),
            number(each.grown),
            number(each.uncorrected),
            number(each.remapped_rows),
            escape(each.detail),
        )
        for each in report.ecc
    ]
    titles = (
        "Host",
        "GPU",
        "Corrected, over time",
        "Corrected",
        "Not corrected",
        "Rows remapped",
        "Last found",
    )
    lead = "Corrected errors at such a rate point at a failing row of cells, not at chance."
    return section(
        "ecc", "ECC trend", lead, table(titles, rows, (3, 4, 5)) + note_of_cut(len(rows), ECC_ROWS)
    )


def missing(report: Report) -> str:
    """Cards that stopped reporting."""
    if not report.absences:
        return section("missing", "Missing cards", "Every card kept reporting.", "")
    end_s = report.fleet.end_s
    rows = [
        (
            escape(each.hostname or ""),
            gpu(each.gpu_id),
            moment(each.start_s),
            duration(each.end_s - each.start_s),
            chip("still missing", "critical") if each.end_s >= end_s - STILL_S else "came back",
        )
        for each in report.absences
    ]
    titles = ("Host", "GPU", "Silent since", "For", "Now")
    lead = "Cards that had reported and stopped."
    body = folded(titles, rows, (3,))
    return section("missing", "Missing cards", lead, body)


def alerts(report: Report) -> str:
    """Raised and cleared alerts."""
    if not report.alerts:
        return section("alerts", "Alerts", "No alerts were raised.", "")
    closed = report.alert_counts.get("cleared", 0)
    standing = sum(report.alert_counts.values()) - closed
    rows = [
        (
            chip("cleared" if each.state == "cleared" else "open", each.state),
            chip(each.severity, each.severity),
            FINDINGS.get(each.finding, escape(each.finding)),
            escape(each.hostname or ""),
            gpu(each.gpu_id),
            moment(each.first_s),
            moment(each.last_s),
            f"{escape(each.message or '')} <em>{escape(each.action or '')}</em>",
        )
        for each in report.alerts
    ]
    titles = ("State", "Severity", "Finding", "Host", "GPU", "First seen", "Last seen", "Message")
    left = standing + closed - len(rows)
    note = f'<p class="note">{plural(left, "alert")} more in table alerts.</p>' if left > 0 else ""
    lead = f"{standing:,} open, {closed:,} cleared."
    return section("alerts", "Alerts", lead, folded(titles, rows) + note)


def quality(report: Report) -> str:
    """The quality of the data."""
    known = report.quality
    facts = [("Samples in windows", number(known.samples))]
    if known.coverage_pct is not None:
        facts.append(("Coverage", f"{number(known.coverage_pct)} % of card time has data"))
    if known.newest_s is not None:
        facts.append(("Newest window ends", f"{moment(known.newest_s)} UTC"))
    facts += [(f"Rows in {name}", number(count)) for name, count in known.rows.items()]
    if known.refused is None:
        facts.append(("Refused records", "not asked; pass --bootstrap to count them by reason"))
    else:
        facts.append(("Refused records", number(sum(known.refused.values()))))
        facts += [
            (f"… {escape(reason)}", number(count))
            for reason, count in sorted(known.refused.items(), key=lambda pair: -pair[1])
        ]
    if report.missing_tables:
        facts.append(("Tables not there", ", ".join(report.missing_tables)))
    body = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    lead = "What the figures above rest on."
    return section("quality", "Data quality", lead, f'<dl class="facts">{body}</dl>')
