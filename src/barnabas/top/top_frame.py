"""Draws a frame of `barnabas top`: lines of text that fit the terminal exactly."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from barnabas.admin.cluster_overview import FENCED
from barnabas.admin.health import Verdict
from barnabas.admin.wording import plural
from barnabas.monitor.states import ClusterState, GroupState, GroupStatus, TopicState
from barnabas.top.short_numbers import age, clean, millis, rate, short, size, size_rate, sparkline
from barnabas.top.top_rows import (
    BAD,
    COLUMNS,
    GOOD,
    PLAIN,
    QUIET,
    STATUS_STYLES,
    WARNING,
    Column,
    Panel,
    Row,
    length,
    table,
)
from barnabas.top.top_view import OVERVIEW, View, selected_index

VERDICT_STYLES = {
    Verdict.HEALTHY: "bold green",
    Verdict.DEGRADED: "bold yellow",
    Verdict.UNAVAILABLE: "bold red",
}
HEAD_STYLE = "bold"
BROKERS_SHOWN = 5
ROWS_LEAST = 3
TABLE_EXTRA = 2
"""A table has an empty line, and its head."""
NAME_LEAST = 16
GAP = "  "
STALE_INTERVALS = 3
MINUTE_S = 60
KEYS = "q quit  Tab table  Enter open  Esc back  s sort  p pause  ? help"
HELP = (
    ("Up Down  j k", "select a row; also PageUp, PageDown, Home, End"),
    ("Tab", "go to the next table: groups, topics, brokers"),
    ("Enter", "open the selected group, topic or broker"),
    ("Esc  Backspace", "go back"),
    ("s", "sort the table by something else; a mark shows by what"),
    ("p  Space", "pause: the values stay as they are"),
    ("?  h", "show and hide this help"),
    ("q  Ctrl-C", "quit"),
)
MEANINGS = (
    ("BEHIND", "how long ago the end passed what the group has committed"),
    ("ETA", "when the group has no lag left at its present speed"),
    ("behind", "it commits, but its lag does not fall"),
    ("stalled", "a member has the partition, and its commit stands still"),
    ("stopped", "no member has the partition, and records wait"),
    ("rewound", "the committed offset went back"),
)


Placed = tuple[int, Column, int]
"""A column with its place among all of its table, and its width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """The terminal that a frame is for."""

    width: int
    height: int
    now_ms: int
    is_plain: bool = False
    """Whether it knows ASCII only."""


def frame(state: ClusterState | None, view: View, canvas: Canvas, failure: str = "") -> Text:
    """Return a frame of exactly the height of the terminal."""
    if view.has_help:
        lines = _help(canvas)
    elif state is None:
        lines = [Text(f" {failure or 'Asking the brokers ...'}", BAD if failure else PLAIN)]
    else:
        lines = _header(state, view, canvas)
        lines += _pages(state, view, canvas, canvas.height - len(lines) - 1)
    body = [*lines[: canvas.height - 1]]
    body += [Text("")] * (canvas.height - 1 - len(body))
    return Text("\n").join([*(_cut(line, canvas) for line in body), _footer(view, canvas)])


def _footer(view: View, canvas: Canvas) -> Text:
    said = f"{' PAUSED  ' if view.is_paused else ' '}{KEYS}"
    return _cut(Text(said, QUIET), canvas)


def _header(state: ClusterState, view: View, canvas: Canvas) -> list[Text]:
    found = state.overview
    verdict = state.health.verdict
    up = sum(each.state != FENCED for each in found.brokers)
    left = Text.assemble(" ", (f" {verdict.value.upper()} ", f"{VERDICT_STYLES[verdict]} reverse"))
    reasons = [clean(each) for each in (*state.health.reasons, *state.troubles)]
    counts = Text.assemble(
        f" Brokers {up} of {len(found.brokers)} up",
        f"   Topics {len(state.topics):,}   Partitions {found.partitions.total:,}",
        f"   Groups {len(state.groups):,}",
    )
    left.append(f"  {clean(found.cluster_id)}", QUIET)
    lines = [
        _both_ends(left, _age(state, view, canvas), canvas.width),
        counts,
        _throughput(state),
        _partition_troubles(state),
    ]
    lines += [Text(f" {each}", WARNING) for each in dict.fromkeys(reasons[:2])]
    if len(reasons) > 2:
        lines.append(Text(f" and {len(reasons) - 2} more: barnabas cluster health", QUIET))
    return lines


def _age(state: ClusterState, view: View, canvas: Canvas) -> Text:
    old_s = max(0, canvas.now_ms - state.taken_ms) / 1000
    style = BAD if old_s > STALE_INTERVALS * state.interval_s + 1 else QUIET
    said = f"{old_s:.0f}s" if old_s < MINUTE_S else age(old_s)
    return Text(f"{'paused, ' if view.is_paused else ''}{said} ago ", style)


def _throughput(state: ClusterState) -> Text:
    bytes_in = state.bytes_per_s if state.bytes_in_per_s is None else state.bytes_in_per_s
    line = Text.assemble(
        (" In ", QUIET),
        f"{rate(state.records_per_s)} records/s",
        f"  {size_rate(bytes_in)}",
    )
    if state.bytes_out_per_s is not None:
        line.append("   Out ", QUIET).append(size_rate(state.bytes_out_per_s))
    if state.produce_p99_s is not None:
        line.append("   p99 produce ", QUIET).append(millis(state.produce_p99_s))
    used = [1 - each.free_bytes / each.total_bytes for each in state.disks.values()]
    if used:
        line.append("   Disk ", QUIET).append(f"{max(used):.0%}")
        full_s = min((e.full_in_s for e in state.disks.values() if e.full_in_s), default=None)
        if full_s is not None and full_s != float("inf"):
            line.append(f", full in {age(full_s)}", WARNING if full_s < 86_400 else QUIET)
    return line


def _partition_troubles(state: ClusterState) -> Text:
    found = state.overview.partitions
    parts = [
        (len(found.offline), "offline", BAD),
        (len(found.under_min_isr), "under min ISR", BAD),
        (len(found.under_replicated), "under-replicated", WARNING),
        (len(found.reassigning), "reassigning", PLAIN),
    ]
    line = Text.assemble((" Partitions ", QUIET))
    shown = [(count, word, style) for count, word, style in parts if count]
    if not shown:
        line.append("all in sync", GOOD)
    for at, (count, word, style) in enumerate(shown):
        line.append(", " if at else "").append(f"{count:,} {word}", style)
    line.append("   Groups ", QUIET)
    statuses = [each.status for each in state.groups.values()]
    order = (GroupStatus.STOPPED, GroupStatus.STALLED, GroupStatus.REWOUND, GroupStatus.BEHIND)
    tallies = [
        (statuses.count(each), each) for each in (*order, GroupStatus.OK) if each in statuses
    ]
    for at, (count, status) in enumerate(tallies):
        line.append(", " if at else "").append(f"{count:,} {status}", STATUS_STYLES[status])
    if not tallies:
        line.append("none" if not statuses else "not judged yet", QUIET)
    return line


def _pages(state: ClusterState, view: View, canvas: Canvas, height: int) -> list[Text]:
    lines: list[Text] = []
    if view.pages:
        lines += _about(state, view, canvas)
        return lines + _table(state, view, canvas, view.panel, height - len(lines))
    for panel, room in zip(OVERVIEW, _rooms(state, height), strict=True):
        lines += _table(state, view, canvas, panel, room)
    return lines


def _rooms(state: ClusterState, height: int) -> tuple[int, int, int]:
    """Share the height between groups, topics and brokers: what one does not need, others get."""
    wanted = [length(state, panel) + TABLE_EXTRA for panel in OVERVIEW]
    brokers = min(wanted[2], BROKERS_SHOWN + TABLE_EXTRA)
    left = max(2 * (ROWS_LEAST + TABLE_EXTRA), height - brokers)
    upper = min(wanted[0], max(left - left // 2, left - wanted[1]))
    return upper, min(wanted[1], left - upper), max(brokers, height - upper - left)


def _about(state: ClusterState, view: View, canvas: Canvas) -> list[Text]:
    """Return what is above the table of a page about one thing."""
    match view.panel:
        case Panel.TOPIC:
            return _about_topic(state.topics.get(view.item), view)
        case Panel.GROUP:
            return _about_group(state.groups.get(view.item), view, canvas)
        case _:
            return _about_broker(state, view)


def _until(words: str, seconds: float | None) -> str:
    """Return the words with a time; "" if it is unknown or never comes."""
    return "" if seconds is None or math.isinf(seconds) else f"{words} {age(seconds)}"


def _gone(what: str, name: str) -> list[Text]:
    return [Text(""), Text(f" {what} {clean(name)} is gone; Esc goes back", WARNING)]


def _about_topic(topic: TopicState | None, view: View) -> list[Text]:
    if topic is None:
        return _gone("Topic", view.item)
    said = (
        f" {plural(len(topic.partitions), 'partition')}, replication factor "
        f"{topic.replication_factor}, {short(topic.records)} records, {size(topic.size_bytes)}, "
        f"{rate(topic.records_per_s)} records/s"
    )
    groups = ", ".join(map(clean, topic.groups)) or "none"
    return [
        Text(""),
        Text.assemble(" Topic ", (clean(topic.name), HEAD_STYLE)),
        Text(said),
        Text.assemble((" Groups ", QUIET), groups),
    ]


def _about_group(group: GroupState | None, view: View, canvas: Canvas) -> list[Text]:
    if group is None:
        return _gone("Group", view.item)
    where = "" if group.coordinator is None else f", coordinator {group.coordinator}"
    kind = "" if group.type is None else f"{group.type}, "
    status = (group.status.value, STATUS_STYLES[group.status])
    lost = sum(each.lost_records for each in group.partitions)
    lines = [
        Text(""),
        Text.assemble(" Group ", (clean(group.name), HEAD_STYLE), "  ", status),
        Text(f" {kind}{group.state}, {plural(len(group.members), 'member')}{where}"),
        Text.assemble(
            f" Behind {age(group.lag_s)}, {short(group.lag)} records",
            f"   ETA {age(group.eta_s)}",
            (_until("   deleted unread in", group.retention_margin_s), WARNING),
            ("" if not lost else f"   {lost:,} lost", BAD),
        ),
    ]
    if any(group.lag_trend):
        bars = sparkline(list(group.lag_trend), canvas.width - 8, is_plain=canvas.is_plain)
        lines.append(Text.assemble((" Lag ", QUIET), bars))
    return lines


def _about_broker(state: ClusterState, view: View) -> list[Text]:
    broker = next((each for each in state.overview.brokers if str(each.id) == view.item), None)
    if broker is None:
        return _gone("Broker", view.item)
    rack = "" if broker.rack is None else f", rack {clean(broker.rack)}"
    said = (
        f" leads {plural(broker.leaders, 'partition')}, {broker.in_sync:,} of "
        f"{broker.replicas:,} replicas in sync"
    )
    lines = [
        Text(""),
        Text.assemble(
            f" Broker {broker.id} ",
            (clean(broker.address), HEAD_STYLE),
            f"{rack}, {broker.state}",
        ),
        Text(said),
    ]
    disk = state.disks.get(broker.id)
    if disk is not None:
        free = f" Disk {size(disk.free_bytes)} of {size(disk.total_bytes)} free"
        lines.append(Text(free + _until(", full in", disk.full_in_s)))
    figures = state.figures.get(broker.id)
    if figures is not None:
        busy = "-" if figures.loop_busy_ratio is None else f"{figures.loop_busy_ratio:.0%}"
        lines.append(
            Text(
                f" In {size_rate(figures.bytes_in_per_s)}   "
                f"Out {size_rate(figures.bytes_out_per_s)}   "
                f"p99 produce {millis(figures.produce_p99_s)}   "
                f"fetch {millis(figures.fetch_p99_s)}"
                f"   Loop {busy} busy"
            )
        )
    if broker.silence is not None:
        lines.append(Text(f" {clean(broker.silence)}", BAD))
    return lines


def _table(
    state: ClusterState, view: View, canvas: Canvas, panel: Panel, height: int
) -> list[Text]:
    """Return a table of exactly `height` lines: a gap, the head, and the rows that fit."""
    found = table(state, panel, view.sort(panel), view.item)
    columns = fitting(COLUMNS[panel], canvas.width)
    has_focus = panel is view.panel
    at = selected_index(view, found.keys(), panel) if panel is view.panel else 0
    room = max(0, height - 2)
    first = max(0, min(at - room // 2, len(found) - room)) if has_focus else 0
    lines = [Text(""), _head(panel, columns, view, canvas, len(found))]
    for place, row in enumerate(found.rows(first, room), first):
        lines.append(_line(row, columns, canvas, is_selected=has_focus and place == at))
    if not len(found) and room:
        lines.append(Text("   none", QUIET))
    lines += [Text("")] * (height - len(lines))
    return lines[: max(0, height)]


def _head(panel: Panel, columns: Sequence[Placed], view: View, canvas: Canvas, count: int) -> Text:
    line = Text("  ")
    sorted_by = view.sorting(panel).column
    mark = "*" if canvas.is_plain else "▾"
    for place, (index, column, width) in enumerate(columns):
        title = column.title if column.width is not None else f"{column.title} {count:,}"
        if index == sorted_by:
            title = f"{mark}{title}" if column.is_right else f"{title}{mark}"
        line.append(("" if not place else " ") + _aligned(title, width, is_right=column.is_right))
    line.stylize(f"{HEAD_STYLE} underline" if panel is view.panel else HEAD_STYLE)
    return line


def _line(
    row: Row,
    columns: Sequence[Placed],
    canvas: Canvas,
    *,
    is_selected: bool,
) -> Text:
    line = Text("> " if is_selected else "  ")
    for place, (index, column, width) in enumerate(columns):
        cell = _aligned(row.cells[index], width, is_right=column.is_right, is_plain=canvas.is_plain)
        line.append("" if not place else " ").append(cell, row.styles.get(index, PLAIN))
    if is_selected:
        line.pad_right(max(0, canvas.width - line.cell_len))
        line.stylize("reverse")
    return line


def fitting(columns: Sequence[Column], width: int) -> list[Placed]:
    """Return the columns that fit, with their places and widths; the least important go first."""
    kept = list(enumerate(columns))
    while True:
        taken = 2 + len(kept) - 1 + sum(each.width or 0 for _, each in kept)
        if width - taken >= NAME_LEAST or len(kept) == 1:
            break
        kept.remove(min(kept, key=lambda pair: (pair[1].width is None, pair[1].importance)))
    left = max(1, width - taken)
    return [(place, each, left if each.width is None else each.width) for place, each in kept]


def _aligned(text: str, width: int, *, is_right: bool, is_plain: bool = False) -> str:
    """Return text of exactly this width; what is too long loses its middle."""
    if cell_len(text) > width:
        text = _shortened(text, width, ".." if is_plain else "…")
    room = " " * max(0, width - cell_len(text))
    return room + text if is_right else text + room


def _shortened(text: str, width: int, mark: str) -> str:
    left = max(0, width - cell_len(mark))
    head = set_cell_size(text, left - left // 2).rstrip()
    tail = text[::-1]
    return head + mark + set_cell_size(tail, width - cell_len(head) - cell_len(mark))[::-1]


def _both_ends(left: Text, right: Text, width: int) -> Text:
    gap = max(1, width - left.cell_len - right.cell_len)
    return Text.assemble(left, " " * gap, right)


def _cut(line: Text, canvas: Canvas) -> Text:
    line = line.copy()
    line.truncate(canvas.width, overflow="crop" if canvas.is_plain else "ellipsis")
    return line


def _help(canvas: Canvas) -> list[Text]:
    lines = [Text(""), Text(" Keys", HEAD_STYLE)]
    lines += _pairs(HELP)
    lines += [Text(""), Text(" Words", HEAD_STYLE), *_pairs(MEANINGS)]
    return lines[: canvas.height - 1]


def _pairs(found: Iterable[tuple[str, str]]) -> list[Text]:
    return [Text.assemble("   ", (f"{name:<15}", HEAD_STYLE), text) for name, text in found]
