"""A broker to try clients against: ours, or the one BARNABAS_TEST_BOOTSTRAP names."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

REQUEST_TIMEOUT_S = 30.0
GROUP_ANSWER_S = 3.0

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """The address of a broker; another Kafka's where the environment names one."""
    named = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
    if named:
        yield named
    elif find_spec("barnabas.testing.broker") is None:
        pytest.skip("no broker: set BARNABAS_TEST_BOOTSTRAP to the address of any Kafka")
    else:
        from barnabas.testing.broker import Broker

        with Broker() as broker:
            yield broker.bootstrap


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


@pytest.fixture
def topic(admin: AdminClient) -> str:
    """A new topic of two partitions."""
    name = f"t-{uuid4().hex}"
    wanted = [NewTopic(name, num_partitions=2, replication_factor=1)]
    admin.create_topics(wanted, request_timeout=REQUEST_TIMEOUT_S)[name].result()
    return name


@pytest.fixture(scope="session")
def group_support(admin: AdminClient) -> None:
    """Skip where the broker has no group coordinator."""
    group = f"g-{uuid4().hex}"
    asked = admin.describe_consumer_groups([group], request_timeout=GROUP_ANSWER_S)
    try:
        asked[group].result()
    except KafkaException as error:
        pytest.skip(f"the broker serves no consumer groups: {error.args[0].str()}")


@pytest.fixture
def group(group_support: None) -> str:
    """The name of a new group."""
    return f"g-{uuid4().hex}"


@pytest.fixture
def run(bootstrap: str) -> Run:
    """Runs a command as a user types it, and checks how it ends."""

    def command(
        *words: str, stdin: bytes = b"", code: int = 0
    ) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [sys.executable, "-m", "barnabas.cli", *words, "--bootstrap", bootstrap],
            input=stdin,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == code, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return done

    return command
