"""The bottleneck section of the report: jobs that wait for memory or links, by host."""

from html import escape

from barnabas.telemetry.report.questions import TOP_ROWS, Questions, names
from barnabas.telemetry.report.report_model import FINDINGS, Bottleneck, Report
from barnabas.telemetry.report.report_wording import NONE, duration, number, plural
from barnabas.telemetry.report.sections import folded, section
from barnabas.telemetry.samples.catalogue import CATALOGUE, Name

BOTTLENECKS = ("pcie_bound", "nvlink_bound", "launch_bound", "memory_bound")
LINKS = ("pcie_bound", "nvlink_bound")
UNPROVEN = (
    '<p class="note">The rules for PCIe and NVLink follow from data sheets and DCGM\'s counters; '
    "they have not been proven on recordings of real cards yet.</p>"
)


def bottlenecks(questions: Questions) -> list[Bottleneck]:
    """Return the longest bottlenecks; jobs that wait for a link come first."""
    rows = questions.rows(
        "SELECT finding, coalesce(namespace, '') AS owner, coalesce(hostname, '') AS host, "
        "count(DISTINCT gpu_id), sum(seconds) AS total, max(value), any_value(unit) FROM episodes "
        f"WHERE finding IN ({names(BOTTLENECKS)}) GROUP BY finding, owner, host ORDER BY "
        f"finding IN ({names(LINKS)}) DESC, total DESC, finding, owner, host LIMIT {TOP_ROWS}"
    )
    return [Bottleneck(*row) for row in rows]


def bottleneck_section(report: Report) -> str:
    """The bottlenecks of cards that seem busy."""
    title = "Bottlenecks"
    if not report.bottlenecks:
        lead = "No card waited for its memory, a link or launches."
        return section("bottlenecks", title, lead, "")
    waiting = sum(each.seconds for each in report.bottlenecks if each.finding in LINKS)
    lead = (
        f"{plural(len(report.bottlenecks), 'row')} of jobs that something other than arithmetic "
        f"holds back; {duration(waiting)} of card time were spent waiting for PCIe or NVLink."
    )
    rows = [
        (
            FINDINGS[each.finding],
            escape(each.namespace) or NONE,
            escape(each.hostname),
            number(each.gpus),
            duration(each.seconds),
            NONE if each.value is None else f"{number(each.value)} {escape(each.unit or '')}",
            escape(CATALOGUE[Name(each.finding)].action),
        )
        for each in report.bottlenecks
    ]
    titles = ("Finding", "Namespace", "Host", "GPUs", "Card time", "At most", "What to do")
    note = UNPROVEN if any(each.finding in LINKS for each in report.bottlenecks) else ""
    return section("bottlenecks", title, lead, folded(titles, rows, (3, 4, 5)) + note)
