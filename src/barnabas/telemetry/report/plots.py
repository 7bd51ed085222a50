"""The plots of a report: fleet activity, card states, one card over time, and distributions."""

from html import escape
from itertools import accumulate

from barnabas.telemetry.report import drawing
from barnabas.telemetry.report.picture import colour, data_uri
from barnabas.telemetry.report.report_model import (
    FINDINGS,
    STATE_LABELS,
    STATE_OF,
    STATES,
    Episode,
    Fleet,
    Histogram,
    Series,
    Shares,
    StateMap,
    Timeline,
)
from barnabas.telemetry.report.report_wording import clock, duration, moment, number, short_gpu

LIGHT = {
    "missing": "#1d1d1f",
    "throttled": "#d55e00",
    "starved": "#cc79a7",
    "parked": "#e8b130",
    "idle": "#cfd4da",
    "launch_bound": "#7cc4ef",
    "link_bound": "#009e73",
    "working": "#0b6aa8",
}
"""After Okabe and Ito: distinguishable with any colour vision, and by lightness in print."""

DARK = LIGHT | {"missing": "#f4f4f2", "idle": "#4a525c", "working": "#2f8ccb"}

LABEL_PX = 14
"""The height of a line of small letters."""

BOTTOM_UP = (
    *("working", "launch_bound", "link_bound", "starved"),
    *("throttled", "parked", "idle", "missing"),
)


def legend(states: tuple[str, ...] = BOTTOM_UP) -> str:
    """Return the legend: the colours with their names."""
    items = "".join(f'<li><i class="s-{state}"></i>{STATE_LABELS[state]}</li>' for state in states)
    return f'<ul class="legend">{items}</ul>'


def time_axis(start_s: float, end_s: float) -> str:
    """Return the labels under a plot."""
    span_s = end_s - start_s
    ticks = [
        f'<span style="left:{100 * (at - start_s) / span_s:.2f}%">{clock(at, span_s)}</span>'
        for at in drawing.time_ticks(start_s, end_s)
        if 0.02 < (at - start_s) / span_s < 0.97
    ]
    return f'<div class="axis">{"".join(ticks)}</div>'


def shares_plot(shares: Shares, fleet: Fleet) -> str:
    """Return the fleet's states, stacked to the number of GPUs."""
    cells = len(shares.counts["working"])
    top = max(1e-9, *(sum(shares.counts[state][i] for state in STATES) for i in range(cells)))
    layers = list(
        accumulate(
            ([shares.counts[state][i] / top for i in range(cells)] for state in BOTTOM_UP),
            lambda below, own: [a + b for a, b in zip(below, own, strict=True)],
        )
    )
    marks, below = "", [0.0] * cells
    for state, above in zip(BOTTOM_UP, layers, strict=True):
        if any(shares.counts[state]):
            marks += drawing.between(_steps(above), _steps(below), f"f-{state}")
        below = above
    svg = drawing.canvas(marks, "shares", "Share of GPUs in each state over time")
    top_gpus = number(min(fleet.gpus, top / shares.step_s))
    return (
        f'<div class="framed" data-hover="shares"><div class="y"><span>{top_gpus}</span>'
        f'<em>GPUs</em><span>0</span></div><div class="area">{svg}<div class="cursor"></div></div>'
        f"{time_axis(fleet.start_s, fleet.end_s)}</div>"
    )


def _steps(values: list[float]) -> list[tuple[float, float]]:
    width = drawing.WIDTH / len(values)
    return [
        (x, drawing.HEIGHT * (1 - value))
        for cell, value in enumerate(values)
        for x in (cell * width, (cell + 1) * width)
    ]


def map_plot(found: StateMap, fleet: Fleet) -> str:
    """Return a row for each GPU, coloured by its states."""
    rows = len(found.gpus)
    height = 30 if rows <= 4 else 16 if rows <= 32 else 9 if rows <= 72 else 6
    pictures = [
        data_uri(found.cells, [colour(palette[state]) for state in STATES])
        for palette in (LIGHT, DARK)
    ]
    span_s = fleet.end_s - fleet.start_s
    # The last cell may reach beyond the end; cut it there.
    width = 100 * len(found.cells[0]) * found.step_s / span_s
    marks = "".join(
        f'<b style="left:{100 * (each.at_s - fleet.start_s) / span_s:.2f}%;'
        f'top:{100 * (each.row + 0.5) / rows:.2f}%" title="{escape(each.text)}"></b>'
        for each in found.marks
    )
    return (
        f'<div class="framed map" data-hover="map">'
        f'<div class="y rows" style="height:{rows * height}px">{_row_labels(found, height)}</div>'
        f'<div class="area" style="height:{rows * height}px">'
        f'<picture><source media="screen and (prefers-color-scheme: dark)" srcset="{pictures[1]}">'
        f'<img src="{pictures[0]}" style="width:{width:.3f}%" alt="State of each GPU over time">'
        f'</picture>{marks}<div class="cursor"></div></div>'
        f"{time_axis(fleet.start_s, fleet.end_s)}</div>"
    )


def _row_labels(found: StateMap, height: int) -> str:
    labels, free_from = "", 0
    by_host = height < 14
    for row, (hostname, gpu_id) in enumerate(found.gpus):
        is_first = row == 0 or found.gpus[row - 1][0] != hostname
        if row * height >= free_from and (is_first or not by_host):
            text = hostname if by_host or (is_first and hostname) else short_gpu(gpu_id)
            top = row * height + (height - LABEL_PX) // 2
            labels += f'<span style="top:{top}px" title="{escape(gpu_id)}">{escape(text)}</span>'
            free_from = row * height + max(height, LABEL_PX)
    return labels


def histogram_plot(found: Histogram) -> str:
    """Return the distribution of a metric, with its median and its 95th percentile."""
    most = max(found.counts) or 1
    width = drawing.WIDTH / len(found.counts)
    bars = "".join(
        drawing.bar(
            i * width + 2, 100 - 96 * count / most, width - 4, 96 * count / most, "histogram-bar"
        )
        for i, count in enumerate(found.counts)
        if count
    )
    span = found.step * len(found.counts)
    middle = drawing.WIDTH * (found.p50 - found.low) / span
    bars += f'<line class="middle" x1="{middle:.1f}" x2="{middle:.1f}" y1="0" y2="100"/>'
    svg = drawing.canvas(bars, "histogram", f"{found.title}: median {number(found.p50)}")
    return (
        f'<figure class="card"><figcaption><b>{found.title} <i>{found.unit}</i></b>'
        f"<span>median <strong>{number(found.p50)}</strong> · p95 <strong>{number(found.p95)}"
        f"</strong> · max <strong>{number(found.largest)}</strong></span></figcaption>"
        f'{svg}<div class="ends"><span>{number(found.low)}</span>'
        f"<span>{number(found.low + span)}</span></div></figure>"
    )


def timeline_plot(found: Timeline, position: int) -> str:
    """Return one card: its findings as lanes, its metrics below, one axis for all."""
    span_s = found.end_s - found.start_s
    shading = "".join(
        drawing.bar(*_extent(each, found), f"shade f-{STATE_OF[each.finding]}")
        for each in found.episodes
        if each.finding in STATE_OF
    )
    panels = "".join(_panel(each, found, shading) for each in found.series)
    hidden = "" if position == 0 else " hidden"
    source = f"Metrics from {found.source}: the line is the mean, the pale edge the maximum."
    return (
        f'<div class="timeline" data-hover="timeline" data-number="{position}"{hidden}>'
        f'<p class="who"><b>{escape(found.hostname)}</b> <code>{escape(found.gpu_id)}</code> '
        f"{escape(found.model)}{_in_namespace(found.namespace)}</p>"
        f'{_lanes(found)}{panels}<div class="framed bare"><div class="y"></div>'
        f'<div class="area"></div>{time_axis(found.start_s, found.end_s)}</div>'
        f'<p class="note">{source} {duration(span_s)} in all.</p></div>'
    )


def _in_namespace(namespace: str) -> str:
    return f" in namespace <b>{escape(namespace)}</b>" if namespace else ""


def _lanes(found: Timeline) -> str:
    lanes = ""
    for finding, label in FINDINGS.items():
        own = [each for each in found.episodes if each.finding == finding]
        if not own:
            continue
        kind = f"f-{STATE_OF.get(finding, 'event')}"
        bars = ""
        for each in own:
            x, _, width, _ = _extent(each, found)
            bars += drawing.bar(x, 12, max(width, 3), 76, kind, _told(each, label))
        lanes += (
            f'<div class="framed lane"><div class="y"><span>{label}</span></div>'
            f'<div class="area">{drawing.canvas(bars)}<div class="cursor"></div></div></div>'
        )
    return lanes


def _told(each: Episode, label: str) -> str:
    value = "" if each.value is None else f", {number(each.value)} {each.unit}"
    return f"{label}: {moment(each.start_s)} for {duration(each.end_s - each.start_s)}{value}"


def _extent(each: Episode, found: Timeline) -> tuple[float, float, float, float]:
    scale = drawing.WIDTH / (found.end_s - found.start_s)
    start = max(each.start_s, found.start_s)
    return (start - found.start_s) * scale, 0, (each.end_s - start) * scale, drawing.HEIGHT


def _panel(series: Series, found: Timeline, shading: str) -> str:
    scale = drawing.WIDTH / (found.end_s - found.start_s)
    step = min(
        (b - a for a, b in zip(found.times_s, found.times_s[1:], strict=False)), default=10.0
    )
    xs = [(at - found.start_s + step / 2) * scale for at in found.times_s]
    highest = max((peak for peak in series.peaks if peak is not None), default=1.0)
    top = drawing.round_top(max(highest, series.ceiling or 0.0))
    means = drawing.runs_of(xs, series.means, top, 2.5 * step * scale)
    peaks = drawing.runs_of(xs, series.peaks, top, 2.5 * step * scale)
    limit, limit_label = "", ""
    if series.ceiling and series.unit != "%":
        y = drawing.HEIGHT * (1 - series.ceiling / top)
        limit = drawing.level(y, "limit")
        limit_label = f'<small style="top:{y:.1f}%">limit {number(series.ceiling, 0)}</small>'
    marks = (
        shading
        + drawing.area(means, "under")
        + drawing.line(peaks, "peak")
        + limit
        + drawing.line(means, "mean")
    )
    return (
        f'<div class="framed panel"><div class="y"><span>{number(top)}</span>'
        f"<em><b>{series.name}</b> {series.unit}</em><span>0</span></div>"
        f'<div class="area">{drawing.canvas(marks, "", f"{series.name} over time")}{limit_label}'
        f'<div class="cursor"></div></div></div>'
    )


def sparkline(values: list[float | None]) -> str:
    """Return a small line for a table."""
    top = max((value for value in values if value is not None), default=1.0) or 1.0
    width = drawing.WIDTH / len(values)
    xs = [i * width for i in range(len(values))]
    runs = drawing.runs_of(xs, values, top * 1.05, 3 * width)
    return drawing.canvas(drawing.area(runs, "under") + drawing.line(runs, "mean"), "spark")
