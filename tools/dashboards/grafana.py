"""What a dashboard consists of, and the JSON that Grafana imports.

Every dashboard has the variables `datasource` and `cluster`. In a query, `@` stands for the
matchers of its dashboard: the cluster, and what its own variables choose.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

COLUMNS = 24
SCHEMA_VERSION = 39
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
TAG = "barnabas"
OF_CLUSTER = 'cluster="$cluster"'
Document = dict[str, Any]


@dataclass(frozen=True)
class Query:
    """A PromQL expression and the name of its series."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A chart, a number or a table."""

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    """timeseries, stat or table."""
    about: str = ""
    """What it shows and when to act, for the tooltip of its title."""
    width: int = 8
    height: int = 7
    is_bad_from: float | None = None
    """A number turns red from this value on."""
    is_bad_below: float | None = None
    maximum: float | None = None
    is_stacked: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """A heading and the panels under it."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A choice at the top of a dashboard: the values of a label."""

    name: str
    title: str
    metric: str
    label: str
    takes_several: bool = False


@dataclass(frozen=True, kw_only=True)
class Board:
    """A dashboard."""

    name: str
    """Of its file; its uid is `barnabas-NAME`."""
    title: str
    about: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = ()
    matchers: str = OF_CLUSTER
    """What `@` stands for."""

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels, in order."""
        for row in self.rows:
            yield from row.panels

    def expression(self, query: Query) -> str:
        """Return the expression of a query as Grafana gets it."""
        return query.expr.replace("@", self.matchers)


def document(board: Board) -> Document:
    """Return the JSON of a dashboard."""
    return {
        "uid": f"barnabas-{board.name}",
        "title": f"Barnabas / {board.title}",
        "description": board.about,
        "tags": [TAG],
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "links": [_link()],
        "templating": {"list": [_datasource(), *map(_variable, _variables(board))]},
        "annotations": {"list": [_alerts()]},
        "panels": list(_placed(board)),
    }


def _variables(board: Board) -> list[Variable]:
    cluster = Variable(
        name="cluster", title="Cluster", metric="up{job=~'barnabas.*'}", label="cluster"
    )
    return [cluster, *board.variables]


def _link() -> Document:
    return {
        "type": "dashboards",
        "title": "Barnabas",
        "tags": [TAG],
        "asDropdown": True,
        "keepTime": True,
        "includeVars": True,
    }


def _datasource() -> Document:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }


def _variable(variable: Variable) -> Document:
    metric = variable.metric.replace("@", OF_CLUSTER)
    query = f"label_values({metric}, {variable.label})"
    found: Document = {
        "name": variable.name,
        "label": variable.title,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": variable.name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": variable.takes_several,
        "includeAll": variable.takes_several,
    }
    if variable.takes_several:
        found |= {"allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}}
    return found


def _alerts() -> Document:
    """Mark the times at which alerts fired, in all charts."""
    return {
        "name": "Alerts",
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": 'ALERTS{alertstate="firing", cluster="$cluster"}',
        "titleFormat": "{{alertname}}",
        "textFormat": "{{instance}} {{topic}} {{group}}",
        "step": "60s",
    }


def _placed(board: Board) -> Iterator[Document]:
    """Yield the panels with their places: rows from left to right, wrapped at the right edge."""
    number, y = 1, 0
    for row in board.rows:
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
            "panels": [],
        }
        number, y, x, height = number + 1, y + 1, 0, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, height = 0, y + height, 0
            place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
            yield _panel(board, panel, number, place)
            number, x, height = number + 1, x + panel.width, max(height, panel.height)
        y += height


def _panel(board: Board, panel: Panel, number: int, place: dict[str, int]) -> Document:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": OPTIONS[panel.kind],
        "targets": [
            _target(board, panel, query, letter)
            for query, letter in zip(panel.queries, "ABCDEFGH", strict=False)
        ],
        **(_table_columns(panel) if panel.kind == "table" else {}),
    }


def _target(board: Board, panel: Panel, query: Query, letter: str) -> Document:
    is_instant = panel.kind != "timeseries"
    return {
        "refId": letter,
        "datasource": DATASOURCE,
        "expr": board.expression(query),
        "legendFormat": query.legend or "__auto",
        "instant": is_instant,
        "range": not is_instant,
        **({"format": "table"} if panel.kind == "table" else {}),
    }


def _defaults(panel: Panel) -> Document:
    found: Document = {"unit": panel.unit, "noValue": "no data", "thresholds": _thresholds(panel)}
    if panel.unit in {"percentunit", "s", "bytes", "Bps", "short", "cps", "reqps"}:
        found["min"] = 0
    if panel.maximum is not None:
        found["max"] = panel.maximum
    if panel.kind == "timeseries":
        found["custom"] = {
            "lineWidth": 1,
            "fillOpacity": 20 if panel.is_stacked else 5,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.is_stacked else "none"},
            "thresholdsStyle": {"mode": "line" if _is_judged(panel) else "off"},
        }
    return found


def _is_judged(panel: Panel) -> bool:
    return panel.is_bad_from is not None or panel.is_bad_below is not None


def _thresholds(panel: Panel) -> Document:
    """A value is red on the bad side; without a bad side it has no colour."""
    base = {"color": "green" if _is_judged(panel) else "text", "value": None}
    if panel.is_bad_from is not None:
        steps = [base, {"color": "red", "value": panel.is_bad_from}]
    elif panel.is_bad_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": panel.is_bad_below}]
    else:
        steps = [base]
    return {"mode": "absolute", "steps": steps}


def _table_columns(panel: Panel) -> Document:
    """Show one column for each query, named by its legend, beside the labels."""
    letters = "ABCDEFGH"[: len(panel.queries)]
    hidden = {"Time": True, **{f"Time {number}": True for number in range(1, len(letters) + 1)}}
    names = {
        f"Value #{letter}": each.legend for letter, each in zip(letters, panel.queries, strict=True)
    }
    if len(letters) == 1:
        names = {"Value": panel.queries[0].legend}
    return {
        "transformations": [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names}},
        ]
    }


OPTIONS: dict[str, Document] = {
    "timeseries": {
        "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "colorMode": "value",
        "graphMode": "none",
        "textMode": "auto",
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
}
