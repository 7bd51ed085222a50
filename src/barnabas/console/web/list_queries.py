"""Searches, sorts and pages lists of rows. The sorted rows of a snapshot are kept until the next.

A list of 10,000 rows is sorted once a snapshot and order, so that the next pages cost only a slice.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams

from barnabas.console.web.problems import bad_input

LIMIT_DEFAULT = 100
LIMIT_MAX = 1_000
SORTED_MAX = 32
"""How many orders of lists are kept."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What a request wants of a list."""

    search: str = ""
    sort: str = ""
    offset: int = 0
    limit: int = LIMIT_DEFAULT


def list_query(parameters: QueryParams) -> ListQuery:
    """Read search, sort, offset and limit."""
    return ListQuery(
        search=parameters.get("search", "").strip(),
        sort=parameters.get("sort", ""),
        offset=whole_number(parameters, "offset", 0, 1 << 31),
        limit=whole_number(parameters, "limit", LIMIT_DEFAULT, LIMIT_MAX, least=1),
    )


def whole_number(
    parameters: QueryParams, name: str, default: int, most: int, least: int = 0
) -> int:
    """Return a parameter that is a whole number; the largest allowed if it is more."""
    text = parameters.get(name)
    if text is None or not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < least:
        raise bad_input(f"{name} {text[:40]!r} is not a whole number of at least {least}")
    return min(int(text), most)


class ListCache:
    """The rows of lists as of the last snapshot, in the orders that pages have asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version: object = None
        self._kept: OrderedDict[tuple[str, str], list[Row]] = OrderedDict()

    def page(
        self,
        version: object,
        name: str,
        rows: Callable[[], Sequence[Row]],
        query: ListQuery,
        searched: str = "name",
    ) -> tuple[int, list[Row]]:
        """Return the number of rows that a search finds, and one page of them."""
        found = self._sorted(version, name, rows, query.sort)
        if query.search:
            wanted = query.search.casefold()
            found = [row for row in found if wanted in str(row[searched]).casefold()]
        return len(found), found[query.offset : query.offset + query.limit]

    def _sorted(
        self, version: object, name: str, rows: Callable[[], Sequence[Row]], order: str
    ) -> list[Row]:
        with self._lock:
            if version is not self._version:
                self._version = version
                self._kept.clear()
            found = self._kept.get((name, order))
            if found is None:
                plain = self._kept.get((name, ""))
                if plain is None:
                    plain = self._keep((name, ""), list(rows()))
                found = self._keep((name, order), sort_rows(plain, order)) if order else plain
            self._kept.move_to_end((name, order))
            return found

    def _keep(self, key: tuple[str, str], rows: list[Row]) -> list[Row]:
        self._kept[key] = rows
        while len(self._kept) > SORTED_MAX:
            self._kept.popitem(last=False)
        return rows


def sort_rows(rows: Sequence[Row], order: str) -> list[Row]:
    """Return rows ordered by a field; unknown values are at the end in both directions."""
    field = order.removeprefix("-")
    if not rows or not field:
        return list(rows)
    if field not in rows[0]:
        known = ", ".join(sorted(rows[0]))
        raise bad_input(f"There is no field {field[:60]!r} to sort by; sort by one of {known}")
    known_rows = [row for row in rows if row[field] is not None]
    unknown_rows = [row for row in rows if row[field] is None]
    known_rows.sort(key=lambda row: _key(row[field]), reverse=order.startswith("-"))
    return known_rows + unknown_rows


def _key(value: Any) -> tuple[int, float, str]:  # noqa: ANN401 - any JSON value
    """Return what orders numbers by size, texts by their letters, and lists by their length."""
    match value:
        case bool() | int() | float():
            return 0, value, ""
        case "never":  # longer than any number of seconds
            return 1, 0, ""
        case str():
            return 2, 0, value.casefold()
        case list() | tuple() | dict():
            return 0, len(value), ""
        case _:
            return 3, 0, str(value)
