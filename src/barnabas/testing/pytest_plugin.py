"""pytest fixtures for programs that use a Kafka client; pytest loads this plugin automatically.

    def test_an_order_arrives(barnabas):
        producer = confluent_kafka.Producer({"bootstrap.servers": barnabas.bootstrap})

`barnabas` is a broker in the test's process, on a free port and with its own directory: a new one
for each test. `@pytest.mark.barnabas({"storage.flush": "interval"})` starts it with other settings.

`barnabas_cluster` is a cluster of three broker processes. It takes seconds to start, so tests share
it: each should create topics with unique names, and restart the brokers that it stops.

pytest imports this module at every start. So the broker is imported only when a test needs it.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster_processes import ClusterProcesses

MARKER = "barnabas(settings): the settings of the broker of this test, by their dotted names"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, for `--strict-markers`."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def barnabas(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """Start a broker for one test; `bootstrap` is its address."""
    from barnabas.testing.broker import Broker  # noqa: PLC0415 - most runs of pytest need none

    marker = request.node.get_closest_marker("barnabas")
    with Broker(settings=_settings(marker)) as broker:
        yield broker


@pytest.fixture(scope="session")
def barnabas_cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ClusterProcesses]":
    """Start three brokers for all tests; `bootstrap` has their addresses, `nodes` the brokers."""
    from barnabas.testing.cluster_processes import ClusterProcesses  # noqa: PLC0415 - as above

    with ClusterProcesses(tmp_path_factory.mktemp("barnabas")) as cluster:
        yield cluster


def _settings(marker: pytest.Mark | None) -> Mapping[str, object]:
    if marker is None:
        return {}
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], Mapping):
        raise pytest.UsageError(
            'the marker barnabas takes one dictionary of settings, such as {"storage.flush": "ack"}'
        )
    return marker.args[0]
