"""Starts one broker or a cluster for the same tests; BARNABAS_BROKERS sets the number of
brokers.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from barnabas.testing.broker import Broker
from barnabas.testing.cluster_processes import ClusterProcesses

PATIENT: Mapping[str, object] = {"cluster.broker_session_timeout": "9s"}
"""A session timeout so long that a busy machine causes no failover in tests without faults."""


def brokers(environment: Mapping[str, str] = os.environ) -> int:
    """Return how many brokers the tests use."""
    return int(environment.get("BARNABAS_BROKERS", "1"))


@contextmanager
def broker_or_cluster(
    settings: Mapping[str, object] | None = None,
) -> Iterator[Broker | ClusterProcesses]:
    """Start one broker in this process, or a cluster of processes; both have a `bootstrap`."""
    if brokers() == 1:
        with Broker(settings=settings) as broker:
            yield broker
        return
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        cluster_of(Path(folder), settings) as cluster,
    ):
        yield cluster


def cluster_of(folder: Path, settings: Mapping[str, object] | None = None) -> ClusterProcesses:
    """Return a cluster that is not started yet."""
    return ClusterProcesses(folder, brokers=brokers(), settings={**PATIENT, **(settings or {})})


def data_of(broker: Broker | ClusterProcesses, node: int) -> Path:
    """Return the data folder of a broker, or of one broker of a cluster."""
    return broker.data if isinstance(broker, Broker) else broker.nodes[node].data
