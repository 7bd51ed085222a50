"""Fixtures: a broker for client tests, our own or the one in BARNABAS_TEST_BOOTSTRAP."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from barnabas.wire.addresses import split_address
from barnabas.wire.link import Link
from barnabas.wire.wire_failures import LinkError

REQUEST_TIMEOUT_S = 30.0
GROUP_REQUESTS = (
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetDeleteRequest,
    ListGroupsRequest,
    DescribeGroupsRequest,
    DeleteGroupsRequest,
)
TRANSACTION_REQUESTS = (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    WriteTxnMarkersRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """The address of the broker; that of another Kafka if the environment names one."""
    named = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
    if named:
        yield named
    elif find_spec("barnabas.testing.broker") is None:
        pytest.skip("no broker: set BARNABAS_TEST_BOOTSTRAP to the address of any Kafka")
    else:
        from tests.support.clusters.cluster_choice import broker_or_cluster

        with broker_or_cluster() as broker:
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
def group_support(bootstrap: str) -> None:
    """Skip if the broker has no group coordinator."""
    require_apis(bootstrap, "consumer groups", GROUP_REQUESTS)


@pytest.fixture(scope="session")
def txn_support(bootstrap: str) -> None:
    """Skip if the broker has no transaction coordinator."""
    require_apis(bootstrap, "transactions", TRANSACTION_REQUESTS)


def require_apis(bootstrap: str, what: str, requests: Sequence[type[Message]]) -> None:
    link = Link(*split_address(bootstrap.split(",", maxsplit=1)[0]))
    try:
        for request in requests:
            link.version(request)
    except LinkError as error:
        pytest.skip(f"the broker serves no {what}: {error}")
    finally:
        link.close()


@pytest.fixture
def group(group_support: None) -> str:
    """The name of a new group."""
    return f"g-{uuid4().hex}"


@pytest.fixture
def telemetry(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `barnabas telemetry` in a new folder, and checks how it ends."""

    def command(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "barnabas.cli", "telemetry", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return command


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
