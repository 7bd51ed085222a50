"""Tests signals, and starts that fail: each ends with one sentence and an exit code."""

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.testing.process import BrokerFailedError, BrokerSubprocess
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.disks.ledger import value_of
from tests.support.disks.mounts import CannotMountError, small_disk
from tests.support.loads.load import Load, consume_all, create_topic, produce_one

pytestmark = pytest.mark.chaos


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerSubprocess]:
    with BrokerSubprocess(tmp_path / "data") as broker:
        yield broker


def sentence_of(broker: BrokerSubprocess, code: int) -> str:
    """Start a broker that cannot start; return the one line that it prints."""
    try:
        with pytest.raises(BrokerFailedError):
            broker.start()
        assert broker.wait() == code
        lines = broker.log_text().strip().splitlines()
        assert len(lines) == 1, lines
        assert "Traceback" not in lines[0]
        return lines[0]
    finally:
        broker.close()


def bytes_read(broker: BrokerSubprocess) -> int:
    """Return how much the process has read, from files and sockets together."""
    lines = Path(f"/proc/{broker.process.pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_clean_stop_leaves_nothing_to_check(broker: BrokerSubprocess, idempotent: bool) -> None:
    idle = bytes_read(broker)
    create_topic(broker.bootstrap, "clean", 2)
    # A clean start reads the last batch of each log, so these are kept small.
    small = 100_000
    with Load(
        broker.bootstrap, "clean", 2, size=20_000, idempotent=idempotent, batch_bytes=small
    ) as load:
        load.wait_for(1000)
        load.finish()
    broker.restart()
    assert bytes_read(broker) > idle + 10_000_000  # a crash makes the next start check everything
    assert broker.terminate() == 0
    assert (broker.data / ".clean-shutdown").exists()
    assert [line["event"] for line in broker.log_lines()][-2:] == ["stopping", "stopped"]
    broker.start()
    assert not (broker.data / ".clean-shutdown").exists()
    assert bytes_read(broker) < idle + 1_000_000  # of the 20 MB that are there
    assert load.ledger.violations(consume_all(broker.bootstrap, "clean", 2)) == []


def test_a_second_sigterm_ends_it_at_once(broker: BrokerSubprocess) -> None:
    broker.pause()  # so that both arrive before it can react to either
    broker.send(signal.SIGTERM)
    broker.resume()
    eventually(lambda: broker.log_lines("stopping") or not broker.running)
    if broker.running:
        broker.send(signal.SIGTERM)
    assert broker.wait() in {0, -signal.SIGTERM}


def test_sigint_stops_it_like_sigterm(broker: BrokerSubprocess) -> None:
    broker.send(signal.SIGINT)
    assert broker.wait() == 0
    assert (broker.data / ".clean-shutdown").exists()


def test_sighup_is_ignored(broker: BrokerSubprocess) -> None:
    broker.send(signal.SIGHUP)
    with RawClient(broker.address) as client:
        assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
    assert broker.terminate() == 0


def test_a_paused_broker_continues_where_it_was(broker: BrokerSubprocess) -> None:
    create_topic(broker.bootstrap, "paused", 1)
    with Load(broker.bootstrap, "paused", 1) as load:
        load.wait_for(100)
        broker.pause()
        before = load.ledger.count
        broker.resume()
        load.wait_for(100)
        load.finish()
    assert load.ledger.count > before
    assert load.ledger.violations(consume_all(broker.bootstrap, "paused", 1)) == []


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = sentence_of(BrokerSubprocess(tmp_path, port=port), 1)
    assert said == (
        f"barnabas: cannot listen on 127.0.0.1:{port}: the port is in use; "
        "stop what uses it, or choose another with --listen"
    )


def test_a_folder_in_use(broker: BrokerSubprocess) -> None:
    said = sentence_of(BrokerSubprocess(broker.data), 1)
    assert "another broker is using" in said
    assert broker.terminate() == 0


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    said = sentence_of(BrokerSubprocess(tmp_path / "data"), 1)
    assert "cannot write to the data folder" in said
    assert "choose another with --data" in said


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    try:
        with small_disk(tmp_path / "disk", 1 << 20, options="ro") as disk:
            said = sentence_of(BrokerSubprocess(disk), 1)
    except CannotMountError as reason:
        pytest.skip(str(reason))
    assert "Read-only file system" in said


def test_an_unknown_key(tmp_path: Path) -> None:
    file = tmp_path / "barnabas.yaml"
    file.write_text("storage:\n  segmet_size: 1MB\n")
    said = sentence_of(BrokerSubprocess(tmp_path / "data", arguments=["--config", str(file)]), 2)
    assert "there is no key storage.segmet_size; did you mean segment_size?" in said


def test_an_address_that_is_none(tmp_path: Path) -> None:
    said = sentence_of(BrokerSubprocess(tmp_path, arguments=["--listen", "nowhere"]), 2)
    assert "--listen 'nowhere' is not HOST:PORT" in said


def test_a_host_that_is_not_ours(tmp_path: Path) -> None:
    said = sentence_of(BrokerSubprocess(tmp_path, host="192.0.2.1", port=9092), 1)
    assert "cannot listen on 192.0.2.1:9092" in said


def test_ipv6(tmp_path: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as reason:
        pytest.skip(f"there is no ::1 here: {reason}")
    with BrokerSubprocess(tmp_path, host="::1") as broker:
        create_topic(broker.bootstrap, "six", 1)
        assert produce_one(broker.bootstrap, "six", value_of("p", 0)) == 0


def test_damaged_metadata_stops_the_start(tmp_path: Path) -> None:
    with BrokerSubprocess(tmp_path) as broker:
        create_topic(broker.bootstrap, "kept", 1)
        assert broker.terminate() == 0
        broker.start()
        broker.kill()
        (log,) = (tmp_path / "__cluster_metadata").glob("*.log")
        content = bytearray(log.read_bytes())
        content[100] ^= 0x10
        log.write_bytes(content)
        with pytest.raises(BrokerFailedError, match="is damaged: metadata up to offset"):
            broker.start()
        assert broker.wait() == 1
        content[100] ^= 0x10
        log.write_bytes(content)
        broker.start()
        assert produce_one(broker.bootstrap, "kept", b"p 0 ") == 0


def test_how_long_a_start_takes(broker: BrokerSubprocess) -> None:
    """This is not a benchmark: only a mistake such as a heavy import exceeds the wide limit."""
    began = time.monotonic()
    broker.restart()
    assert time.monotonic() - began < 5
