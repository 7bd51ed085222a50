"""Formats numbers, times and names for the report."""

from datetime import UTC, datetime

DAY_S = 86_400
NONE = "\N{EN DASH}"
"""The text for unknown values."""


def number(value: float | None, digits: int = 1) -> str:
    """Return a number with a suitable number of digits."""
    if value is None:
        return NONE
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.{digits}f}"


def energy(kwh: float) -> str:
    """Return an amount of energy in a suitable unit."""
    return f"{number(1000 * kwh)} Wh" if 0 < kwh < 1 else f"{number(kwh)} kWh"


def money(value: float, currency: str) -> str:
    """Return an amount; a currency in letters is put after it."""
    amount = f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
    return f"{amount} {currency}" if currency.isalpha() else f"{currency}{amount}"


def duration(seconds: float) -> str:
    """Return a time span in its two largest units."""
    left = round(seconds)
    if left < 60:
        return f"{left} s"
    parts = []
    for unit, size in (("d", DAY_S), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def moment(seconds: float) -> str:
    """Return a time in full, without its zone (a report is in UTC and says so once)."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def clock(seconds: float, span_s: float) -> str:
    """Return a time for an axis of a given span."""
    at = datetime.fromtimestamp(seconds, UTC)
    if span_s > 3 * DAY_S:
        return at.strftime("%b %d")
    if span_s > 20 * 60:
        return at.strftime("%b %d") if at.hour == at.minute == 0 else at.strftime("%H:%M")
    return at.strftime("%H:%M:%S")


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short_gpu(gpu_id: str) -> str:
    """Return the end of a UUID, which distinguishes cards better than the beginning."""
    return gpu_id if len(gpu_id) <= 14 else f"GPU…{gpu_id[-6:]}"
