"""`/api/alerts`: the shipped rules that the console judges, and those of an Alertmanager."""

from starlette.routing import Route

from barnabas.console.console_endpoints import Asked, ConsoleParts, live
from barnabas.console.extras.alertmanager import Alertmanager
from barnabas.console.state.alert_rules import FIRING, OK, Alert, AlertBoard
from barnabas.monitor.states import ClusterState


def alert_routes(
    parts: ConsoleParts, board: AlertBoard, manager: Alertmanager | None
) -> list[Route]:
    """Return the route of the alerts."""

    def alerts(asked: Asked) -> object:
        state = parts.state(asked)
        own = [each.as_json() for each in board.alerts if _is_shown(each, state)]
        others = [] if manager is None else manager.alerts()
        known = {(each["name"], each["state"]) for each in others}
        # What both judge is listed once, as Alertmanager says it.
        kept = [each for each in own if (each["name"], FIRING) not in known]
        items = sorted([*others, *kept], key=lambda each: each["state"] == OK)
        return {
            "total": len(items),
            "items": items,
            "taken_ms": state.taken_ms,
            "failure": None if manager is None else manager.failure,
        }

    return [live(parts, "/api/alerts", alerts)]


def _is_shown(alert: Alert, state: ClusterState) -> bool:
    """Return whether the user may know of the group that an alert names, if it names one."""
    group = alert.labels.get("consumergroup")
    return group is None or group in state.groups
