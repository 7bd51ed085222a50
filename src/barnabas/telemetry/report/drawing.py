"""Draws plots as SVG that stretches to any width while strokes and text keep their size.

A plot is drawn on a canvas of 1000 by 100 that the page stretches to any width, so that a phone
gets the same plot with letters of the same size as a desk.
"""

import math
from collections.abc import Sequence
from html import escape

WIDTH = 1000
HEIGHT = 100

Points = Sequence[tuple[float, float]]


def canvas(content: str, kind: str = "", label: str = "") -> str:
    """Return an SVG element around drawn marks."""
    described = f' role="img" aria-label="{escape(label)}"' if label else ' aria-hidden="true"'
    return (
        f'<svg class="plot {kind}" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none"'
        f"{described}>{content}</svg>"
    )


def line(runs: Sequence[Points], kind: str) -> str:
    """Return lines through points; each run stands alone, gaps stay gaps."""
    path = "".join(_moves(run) for run in runs if run)
    return f'<path class="{kind}" d="{path}"/>' if path else ""


def area(runs: Sequence[Points], kind: str) -> str:
    """Return the areas between lines and the bottom."""
    path = "".join(
        f"{_moves(run)}L{_short(run[-1][0])} {HEIGHT}L{_short(run[0][0])} {HEIGHT}Z"
        for run in runs
        if run
    )
    return f'<path class="{kind}" d="{path}"/>' if path else ""


def between(tops: Points, bottoms: Points, kind: str) -> str:
    """Return the area between two lines."""
    back = "".join(f"L{_short(x)} {_short(y)}" for x, y in reversed(bottoms))
    return f'<path class="{kind}" d="{_moves(tops)}{back}Z"/>'


def bar(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    """Return a rectangle."""
    said = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<rect class="{kind}" x="{_short(x)}" y="{_short(y)}" width="{_short(width)}" '
        f'height="{_short(height)}">{said}</rect>'
    )


def level(y: float, kind: str) -> str:
    """Return a horizontal line."""
    return f'<line class="{kind}" x1="0" x2="{WIDTH}" y1="{_short(y)}" y2="{_short(y)}"/>'


def runs_of(
    xs: Sequence[float], values: Sequence[float | None], top: float, gap: float
) -> list[list[tuple[float, float]]]:
    """Return points on the canvas, cut where a value is missing or the next is far."""
    runs: list[list[tuple[float, float]]] = [[]]
    last = None
    for x, value in zip(xs, values, strict=True):
        if value is None or (last is not None and x - last > gap):
            runs.append([])
        if value is not None:
            runs[-1].append((x, HEIGHT * (1 - min(1.0, max(0.0, value / top)))))
        last = x
    # A lone point has no length; give it one that can be seen.
    return [
        run if len(run) > 1 else [*run, (run[0][0] + gap / 4, run[0][1])] for run in runs if run
    ]


def round_top(value: float) -> float:
    """Return the next round number for the top of an axis."""
    if value <= 0:
        return 1.0
    size = 10 ** math.floor(math.log10(value))
    return float(
        next(step * size for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if value <= step * size)
    )


def time_ticks(start_s: float, end_s: float, count: int = 8) -> list[float]:
    """Return round times within a span."""
    steps = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
    span_s = end_s - start_s
    whole_days = 86400 * math.ceil(span_s / 86400 / count)
    step = next((each for each in steps if span_s / each <= count), whole_days)
    first = math.ceil(start_s / step) * step
    return [float(at) for at in range(first, math.floor(end_s) + 1, step)]


def _moves(points: Points) -> str:
    return "".join(
        f"{'L' if number else 'M'}{_short(x)} {_short(y)}" for number, (x, y) in enumerate(points)
    )


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
