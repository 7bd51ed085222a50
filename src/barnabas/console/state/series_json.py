"""Series of the watcher as the API's JSON."""

from barnabas.console.web.json_answers import number
from barnabas.monitor.states import Series


def series_json(series: Series, *names: str) -> dict[str, object]:
    """Return times and the named values; unknown ones are null."""
    length = len(series.times_ms)
    found: dict[str, object] = {"times_ms": list(series.times_ms)}
    for name in names:
        values = series.values.get(name) or [None] * length
        found[name] = [number(each) for each in values]
    return found
