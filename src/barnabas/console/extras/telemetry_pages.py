"""The GPU report of a lake: its figures as JSON, and the page for a frame.

The report is made by `barnabas.telemetry.report`, at most every half minute. Its libraries are an
extra of their own, and are imported when a page asks.
"""

import threading
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from barnabas.console.console_endpoints import Asked, ConsoleParts, live
from barnabas.console.web.problems import ProblemError, not_found
from barnabas.console.web.security_headers import FRAME_POLICY

if TYPE_CHECKING:
    from barnabas.telemetry.report.live import LivePage
    from barnabas.telemetry.report.report_model import Report

REFRESH_S = 30.0
NO_LAKE = (
    "No lake is set; start the console with --lake DIR, where DIR holds the tables of "
    "`barnabas telemetry run`"
)


class TelemetryPages:
    """The report of one lake."""

    def __init__(self, lake: Path | None) -> None:
        self._lake = lake
        self._lock = threading.Lock()
        self._live: LivePage | None = None

    def page(self) -> "LivePage":
        """Return the report that refreshes itself."""
        if self._lake is None:
            raise not_found(NO_LAKE)
        with self._lock:
            if self._live is None:
                self._live = _live_page(self._lake)
            return self._live


def telemetry_routes(parts: ConsoleParts) -> list[Route]:
    """Return the routes of the GPU report."""
    pages = TelemetryPages(parts.settings.lake)

    def summary(_: Asked) -> object:
        found = pages.page().latest()
        if found.report is None:
            raise not_found(f"The lake has no report yet: {found.failure}")
        return {
            "lake": str(parts.settings.lake),
            "updated_ms": round(found.at_s * 1000),
            "failure": found.failure or None,
            **report_json(found.report),
        }

    def report(_: Asked) -> Response:
        headers = {
            "Content-Security-Policy": FRAME_POLICY,
            "X-Frame-Options": "SAMEORIGIN",
            "Cache-Control": "no-store",
        }
        return Response(pages.page().html(), headers=headers, media_type="text/html")

    return [
        live(parts, "/api/telemetry", summary),
        live(parts, "/api/telemetry/report", report),
    ]


def report_json(report: "Report") -> dict[str, object]:
    """Return the figures of a report."""
    from barnabas.telemetry.report.report_model import FINDINGS

    whole = next(iter(report.waste.get("all", ())), None)
    wasted = None if whole is None else round(whole.energy_cost + whole.card_cost, 2)
    return {
        "summary": {
            "gpus": report.fleet.gpus,
            "hosts": report.fleet.hosts,
            "idle_hours": None if whole is None else round(whole.idle_hours, 2),
            "waste": wasted,
            "currency": report.wish.currency,
        },
        "findings": [
            {
                "finding": name,
                "label": label,
                "gpus": gpus,
                "episodes": episodes,
                "seconds": seconds,
            }
            for name, label in FINDINGS.items()
            if name in report.finding_totals
            for gpus, episodes, seconds in (report.finding_totals[name],)
        ],
        "advice": [{"severity": each.severity, "text": each.text} for each in report.advice],
    }


def _live_page(lake: Path) -> "LivePage":
    try:
        from barnabas.telemetry.lake.lake_reading import Lake
        from barnabas.telemetry.lake.prices import stored
        from barnabas.telemetry.report.gathering import gather
        from barnabas.telemetry.report.live import LivePage
        from barnabas.telemetry.report.report_model import Wish
    except ModuleNotFoundError as error:
        raise ProblemError(
            HTTPStatus.NOT_FOUND,
            "not_installed",
            f"The GPU report needs {error.name}; run: pip install 'barnabas[telemetry]'",
        ) from None

    def gathered() -> "Report":
        prices = stored(lake)
        wish = Wish(
            price_per_kwh=prices.price_per_kwh, price_per_gpu_hour=prices.price_per_gpu_hour
        )
        return gather(Lake(lake), wish)

    return LivePage(gathered, REFRESH_S)
