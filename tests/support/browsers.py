"""What tests of the console's page share."""

import shutil
from collections.abc import Callable
from typing import Any

from web.mock.server import MockConsole

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NO_BROWSER = "no chromium on PATH; install it: apt-get install -y --no-install-recommends chromium"
TIMEOUT_MS = 15_000

MakeConsole = Callable[..., MockConsole]
Open = Callable[..., Any]

PAGES = {
    "/": ("Overview", "DEGRADED"),
    "/topics": ("Topics", "shipments"),
    "/topics/orders": ("orders", "Live tail"),
    "/topics/orders/partitions": ("orders", "Broker 1"),
    "/topics/orders/groups": ("orders", "Status"),
    "/topics/orders/settings": ("orders", "min.insync.replicas"),
    "/groups": ("Groups", "search-index"),
    "/groups/billing": ("billing", "Committed"),
    "/groups/billing/members": ("billing", "billing-0-5f0c2d"),
    "/messages?topic=orders": ("Messages", "Live tail"),
    "/brokers": ("Brokers", "Metadata quorum"),
    "/brokers/1": ("Broker 1", "Do not restart"),
    "/heatmap": ("Heat map", "Largest"),
    "/plans": ("Plans", "Moving now"),
    "/transactions": ("Transactions", "hanging"),
    "/streams": ("Streams", "gpu-silver"),
    "/streams/orders-hourly": ("orders-hourly", "was deleted and created again"),
    "/telemetry": ("Telemetry", "Spent on idleness"),
    "/alerts": ("Alerts", "BrokerDown"),
    "/nothing": ("No such page", "Ctrl K"),
}
"""The addresses of pages, each with its heading and a text of its content."""
