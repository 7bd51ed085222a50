"""Stores the prices of energy and cards in the lake: `run` writes them, `report` reads them.

    LAKE/_lake/prices.json    {"price_per_kwh": 0.22, "price_per_gpu_hour": 3.1}

The jobs count hours and joules and need no prices. A report multiplies.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake.lake import Lake

FILE = "_lake/prices.json"


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Money for a kWh and for an hour of a card."""

    price_per_kwh: float = Thresholds.price_per_kwh
    price_per_gpu_hour: float = Thresholds.price_per_gpu_hour


def store(lake: Lake, thresholds: Thresholds) -> None:
    """Keep the prices of a settings file for reports on this lake."""
    prices = Prices(
        price_per_kwh=thresholds.price_per_kwh, price_per_gpu_hour=thresholds.price_per_gpu_hour
    )
    lake.put(FILE, json.dumps(asdict(prices)).encode())


def stored(folder: Path) -> Prices:
    """Return the prices of the last run with a settings file, or the defaults."""
    place = folder / FILE
    return Prices(**json.loads(place.read_text(encoding="utf-8"))) if place.is_file() else Prices()
