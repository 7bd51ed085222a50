"""What a user of `barnabas top` looks at, and how each key changes that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from barnabas.monitor.states import ClusterState
from barnabas.top.top_rows import SORTS, Panel, Sort, table

OVERVIEW = (Panel.GROUPS, Panel.TOPICS, Panel.BROKERS)
"""The tables of the first page, in the order of Tab."""
OPENS = {Panel.BROKERS: Panel.BROKER, Panel.GROUPS: Panel.GROUP, Panel.TOPICS: Panel.TOPIC}
PAGE_ROWS = 10


class Key(Enum):
    """A key that does something."""

    UP = "up"
    DOWN = "down"
    PAGE_UP = "page up"
    PAGE_DOWN = "page down"
    HOME = "home"
    END = "end"
    NEXT = "next"
    BEFORE = "before"
    OPEN = "open"
    BACK = "back"
    SORT = "sort"
    PAUSE = "pause"
    HELP = "help"
    QUIT = "quit"


@dataclass(frozen=True, slots=True)
class Shown:
    """A page about one topic, group or broker."""

    panel: Panel
    item: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Where a user is."""

    focus: Panel = Panel.GROUPS
    """The table of the first page that keys move in."""
    pages: Sequence[Shown] = ()
    """The pages that were opened, the last on top; none is the first page."""
    selected: Mapping[Panel, str] = field(default_factory=dict)
    sorts: Mapping[Panel, int] = field(default_factory=dict)
    is_paused: bool = False
    has_help: bool = False
    is_over: bool = False

    @property
    def panel(self) -> Panel:
        """The table that keys move in."""
        return self.pages[-1].panel if self.pages else self.focus

    @property
    def item(self) -> str:
        """What the page is about; "" on the first page."""
        return self.pages[-1].item if self.pages else ""

    def sort(self, panel: Panel) -> int:
        """Return which of its sorts a table has."""
        return self.sorts.get(panel, 0)

    def sorting(self, panel: Panel) -> Sort:
        """Return what a table is sorted by."""
        return SORTS[panel][self.sort(panel) % len(SORTS[panel])]


def press(view: View, key: Key, state: ClusterState | None) -> View:
    """Return the view after a key."""
    if view.has_help and key is not Key.QUIT:
        return replace(view, has_help=False)
    change = CHANGES.get(key)
    if change is not None:
        return change(view)
    return view if state is None else _within(view, key, state)


def _sorted(view: View) -> View:
    panel = view.panel
    return replace(view, sorts={**view.sorts, panel: view.sort(panel) + 1})


def _focused(view: View, step: int) -> View:
    if view.pages:
        return view
    return replace(view, focus=OVERVIEW[(OVERVIEW.index(view.focus) + step) % len(OVERVIEW)])


CHANGES: Mapping[Key, Callable[[View], View]] = {
    Key.QUIT: lambda view: replace(view, is_over=True),
    Key.HELP: lambda view: replace(view, has_help=True),
    Key.PAUSE: lambda view: replace(view, is_paused=not view.is_paused),
    Key.BACK: lambda view: replace(view, pages=view.pages[:-1]),
    Key.SORT: _sorted,
    Key.NEXT: lambda view: _focused(view, 1),
    Key.BEFORE: lambda view: _focused(view, -1),
}
"""What keys do that need no rows."""


def selected_index(view: View, keys: Sequence[str], panel: Panel) -> int:
    """Return which row is selected; the first if the selected one is gone."""
    wanted = view.selected.get(panel)
    return keys.index(wanted) if wanted in keys else 0


def _within(view: View, key: Key, state: ClusterState) -> View:
    """Move in a table, or open what is selected."""
    panel = view.panel
    keys = table(state, panel, view.sort(panel), view.item).keys()
    if not keys:
        return view
    at = selected_index(view, keys, panel)
    if key is Key.OPEN:
        opened = OPENS.get(panel)
        if opened is None:
            return view
        shown = Shown(opened, keys[at])
        selected = {each: item for each, item in view.selected.items() if each is not opened}
        return replace(view, pages=(*view.pages, shown), selected={**selected, panel: keys[at]})
    last = len(keys) - 1
    steps = {
        Key.UP: at - 1,
        Key.DOWN: at + 1,
        Key.PAGE_UP: at - PAGE_ROWS,
        Key.PAGE_DOWN: at + PAGE_ROWS,
        Key.HOME: 0,
        Key.END: last,
    }
    to = max(0, min(last, steps[key]))
    return replace(view, selected={**view.selected, panel: keys[to]})
