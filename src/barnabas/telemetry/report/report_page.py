"""Assembles the HTML page of a report: one file without external resources."""

import json
from html import escape
from importlib.resources import files

from barnabas.model.version import __version__
from barnabas.telemetry.report import plots, sections
from barnabas.telemetry.report.bottleneck_section import bottleneck_section
from barnabas.telemetry.report.report_model import FINDINGS, STATE_LABELS, STATES, Report, Timeline
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

TIMES = "\N{MULTIPLICATION SIGN}"
RESTED_ON = ("gold_10s", "findings", "alerts")

NAVIGATION = (
    ("fleet", "Fleet"),
    ("timeline", "Timeline"),
    ("findings", "Findings"),
    ("offenders", "Offenders"),
    ("waste", "Waste"),
    ("throttling", "Throttling"),
    ("stragglers", "Stragglers"),
    ("bottlenecks", "Bottlenecks"),
    ("xids", "XIDs"),
    ("ecc", "ECC"),
    ("missing", "Missing"),
    ("alerts", "Alerts"),
    ("quality", "Data"),
)


def page(report: Report) -> str:
    """Return the whole page."""
    title = escape(report.wish.title)
    body = "".join(
        (
            _header(report),
            _advice(report),
            _fleet(report),
            _timelines(report),
            sections.findings(report),
            sections.offenders(report),
            sections.waste(report),
            sections.instances(report),
            sections.throttling(report),
            sections.stragglers(report),
            bottleneck_section(report),
            sections.xids(report),
            sections.ecc(report),
            sections.missing(report),
            sections.alerts(report),
            sections.quality(report),
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<link rel="icon" href="data:,"><title>{title}</title>'
        f"<style>{_resource('style.css')}{_colours()}</style></head><body>"
        f"<main>{body}</main>"
        f"<footer>Made by Barnabas {__version__} from <code>{escape(report.folder)}</code>. "
        "All times are UTC.</footer>"
        f'<div id="tip" role="status" hidden></div>{_data(report)}'
        f"<script>{_resource('page.js')}</script></body></html>\n"
    )


def _header(report: Report) -> str:
    fleet = report.fleet
    models = ", ".join(f"{count:,} {TIMES} {escape(name)}" for name, count in fleet.models[:4])
    links = "".join(f'<a href="#{anchor}">{label}</a>' for anchor, label in NAVIGATION)
    return (
        f"<header><h1>{escape(report.wish.title)}</h1>"
        f"<p>{models} · {moment(fleet.start_s)} to {moment(fleet.end_s)} UTC "
        f"({duration(fleet.seconds)})</p><nav>{links}</nav></header>{_figures(report)}"
    )


def _figures(report: Report) -> str:
    fleet, waste = report.fleet, report.waste["all"]
    cost = waste[0].energy_cost + waste[0].card_cost if waste else 0.0
    idle = waste[0].idle_hours if waste else 0.0
    share = 100 * idle / fleet.gpu_hours if fleet.gpu_hours else 0.0
    standing = sum(n for state, n in report.alert_counts.items() if state != "cleared")
    util = NONE if fleet.util_mean is None else f"{number(fleet.util_mean, 0)}<small>%</small>"
    figures = (
        (number(fleet.gpus), "GPUs", f"{plural(fleet.hosts, 'host')}"),
        (util, "mean utilisation", "of some kernel running, not of work"),
        (_united(energy(fleet.energy_kwh)), "energy used", "by the cards alone"),
        (f"{number(share)}<small>%</small>", "of card time idle", duration(3600 * idle)),
        (money(cost, report.wish.currency), "spent on idleness", "energy and cards"),
        (number(standing), "open alerts", f"{report.alert_counts.get('cleared', 0):,} cleared"),
    )
    items = "".join(
        f"<li><strong>{value}</strong><b>{label}</b><span>{note}</span></li>"
        for value, label, note in figures
    )
    return f'<ul class="figures">{items}</ul>'


def _united(text: str) -> str:
    amount, unit = text.split(" ")
    return f"{amount}<small>{unit}</small>"


def _advice(report: Report) -> str:
    items = "".join(
        f'<li class="{each.severity}"><a href="#{each.anchor}">{escape(each.text)}</a></li>'
        for each in report.advice
    )
    gone = ""
    lacking = [name for name in report.missing_tables if name in RESTED_ON]
    if lacking:
        gone = (
            f'<p class="note">Not in the lake: {", ".join(lacking)}. '
            "What rests on them is empty below.</p>"
        )
    return f'<section id="first"><h2>Do first</h2><ol class="advice">{items}</ol>{gone}</section>'


def _fleet(report: Report) -> str:
    spreads = "".join(plots.histogram_plot(each) for each in report.histograms)
    left = report.map.left_out
    rows = len(report.map.gpus)
    cut = (
        f" The {rows} cards with the most trouble are shown, {left:,} are left out." if left else ""
    )
    lead = "What the cards did, all together and one by one."
    is_single = report.fleet.gpus == 1
    together = (
        "" if is_single else (f"<h3>All cards</h3>{plots.shares_plot(report.shares, report.fleet)}")
    )
    each = (
        f"<h3>{'The card' if is_single else 'Card by card'}</h3>"
        f"{plots.map_plot(report.map, report.fleet)}"
        f'<p class="note">A cell is {duration(report.map.step_s)} and has the colour of what the '
        f"card did most; a ring is an XID.{cut}</p>"
    )
    body = f'{plots.legend()}{together}{each}<h3>Spread</h3><div class="cards">{spreads}</div>'
    return sections.section("fleet", "Fleet", lead, body)


def _timelines(report: Report) -> str:
    if not report.timelines:
        return ""
    lead = "One card, its findings marked: lanes name them, shades carry them through the metrics."
    shown = "".join(plots.timeline_plot(each, i) for i, each in enumerate(report.timelines))
    return sections.section("timeline", "Timeline", lead, _selector(report.timelines) + shown)


def _selector(timelines: list[Timeline]) -> str:
    if len(timelines) < 2:
        return ""
    options = "".join(
        f'<option value="{i}">{escape(each.hostname)} · {escape(short_gpu(each.gpu_id))} · '
        f"{plural(len(each.episodes), 'episode')}</option>"
        for i, each in enumerate(timelines)
    )
    return (
        f'<p class="choose"><label>GPU <select id="choose">{options}</select></label> '
        "the cards with the most kinds of findings; <code>--gpu</code> shows any other</p>"
    )


def _data(report: Report) -> str:
    """The data for hovering, as JSON that cannot close its own element."""
    fleet = report.fleet
    content = {
        "start": fleet.start_s,
        "end": fleet.end_s,
        "states": [STATE_LABELS[state] for state in STATES],
        "shares": {
            "step": report.shares.step_s,
            "counts": [
                [round(value / report.shares.step_s, 1) for value in report.shares.counts[state]]
                for state in STATES
            ],
        },
        "map": {
            "step": report.map.step_s,
            "rows": [f"{hostname} · {gpu_id}" for hostname, gpu_id in report.map.gpus],
            "cells": ["".join(_letter(cell) for cell in row) for row in report.map.cells],
        },
        "timelines": [_timeline_data(each) for each in report.timelines],
    }
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{text}</script>'


def _timeline_data(found: Timeline) -> dict[str, object]:
    return {
        "times": [round(at - found.start_s, 1) for at in found.times_s],
        "series": [
            {
                "name": each.name,
                "unit": each.unit,
                "means": [None if value is None else round(value, 1) for value in each.means],
            }
            for each in found.series
        ],
        "found": [
            [
                FINDINGS[each.finding],
                each.start_s - found.start_s,
                each.end_s - found.start_s,
            ]
            for each in found.episodes
            if each.finding in FINDINGS
        ],
    }


def _letter(cell: int) -> str:
    return "." if cell < 0 else str(cell)


def _colours() -> str:
    """The palette of the states as style rules, for light and dark."""

    def rules(palette: dict[str, str]) -> str:
        return "".join(
            f".s-{state}{{background:{colour}}}.f-{state}{{fill:{colour}}}"
            for state, colour in palette.items()
        )

    return (
        f"{rules(plots.LIGHT)}@media screen and (prefers-color-scheme:dark){{{rules(plots.DARK)}}}"
    )


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
