"""Brokers and clusters for tests and notebooks, and the pytest fixtures.

Names are imported when they are first asked for, since pytest loads this package in every run.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster_processes import ClusterProcesses
    from barnabas.testing.process import BrokerSubprocess
__all__ = ["Broker", "BrokerSubprocess", "ClusterProcesses"]

MODULES = {
    "Broker": "broker",
    "BrokerSubprocess": "process",
    "ClusterProcesses": "cluster_processes",
}


def __getattr__(name: str) -> object:
    """Import a name from its module."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
