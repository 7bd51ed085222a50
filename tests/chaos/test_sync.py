"""Disks that fail or lose power: records acknowledged under flush=ack stay, or the broker stops."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.testing.process import BrokerFailedError, BrokerSubprocess
from tests.support.disks.ledger import stored_on_disk, value_of
from tests.support.disks.mounts import CannotMountError, PowerCutDisk
from tests.support.loads.load import Load, consume_all, create_topic, produce_one

pytestmark = pytest.mark.chaos

CUTS = int(os.environ.get("CHAOS_POWER_CUTS", "2"))
TOPIC = "safe"
SYNC_FAILED = 70
REQUEST_TIMEOUT_MS = 6000
"""Long enough to reach the broker on a busy machine: a request that never came fails nothing."""
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Syncs of files below FAIL_UNDER fail once the file FAIL_WHEN exists, and are noted in it. */
static int fails(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    const char *when = getenv("FAIL_WHEN"), *under = getenv("FAIL_UNDER");
    if (size < 0 || !when || !under || access(when, F_OK)) return 0;
    path[size] = 0;
    if (!strstr(path, under)) return 0;
    FILE *log = fopen(when, "a");
    if (log) { fprintf(log, "%s\n", path); fclose(log); }
    errno = EIO;
    return 1;
}
int fdatasync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    return fails(fd) ? -1 : real(fd);
}
int fsync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    return fails(fd) ? -1 : real(fd);
}
"""


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    source, library = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def produce_late(bootstrap: str) -> None:
    produce_one(bootstrap, TOPIC, value_of("p", 1), timeout_ms=REQUEST_TIMEOUT_MS)


def create_another(bootstrap: str) -> None:
    create_topic(bootstrap, "another", 1)


def delete_first(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (done,) = admin.delete_records(
        [TopicPartition(TOPIC, 0, 1)], request_timeout=REQUEST_TIMEOUT_MS / 1000
    ).values()
    done.result()


@pytest.mark.parametrize(
    ("under", "failing"),
    [
        ("/topics/", produce_late),
        ("/topics/", delete_first),
        ("/__cluster_metadata/", create_another),
    ],
)
def test_a_failed_sync_stops_the_broker(
    tmp_path: Path, shim: Path, under: str, failing: Callable[[str], None]
) -> None:
    switch = tmp_path / "fail"
    environment = {"LD_PRELOAD": str(shim), "FAIL_WHEN": str(switch), "FAIL_UNDER": under}
    with BrokerSubprocess(tmp_path / "data", environment=environment) as broker:
        create_topic(broker.bootstrap, TOPIC, 1)
        assert produce_one(broker.bootstrap, TOPIC, value_of("p", 0)) == 0
        switch.touch()
        with pytest.raises(KafkaException):
            failing(broker.bootstrap)
        assert broker.wait() == SYNC_FAILED
        (line,) = broker.log_lines("a sync failed, so this process stops")
        assert "Input/output error" in line["problem"]
        assert len(switch.read_text().splitlines()) == 1  # tried once, never again
        switch.unlink()
        broker.start()
        assert consume_all(broker.bootstrap, TOPIC, 1)[0][0].number == 0


def test_a_failed_sync_stops_the_start(tmp_path: Path, shim: Path) -> None:
    switch = tmp_path / "fail"
    environment = {"LD_PRELOAD": str(shim), "FAIL_WHEN": str(switch), "FAIL_UNDER": "/topics/"}
    with BrokerSubprocess(tmp_path / "data", environment=environment) as broker:
        create_topic(broker.bootstrap, TOPIC, 1)
        assert produce_one(broker.bootstrap, TOPIC, value_of("p", 0)) == 0
        broker.kill()
        switch.touch()
        with pytest.raises(BrokerFailedError, match="a sync failed"):
            broker.start()
        assert broker.wait() == SYNC_FAILED


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[PowerCutDisk]:
    try:
        disk = PowerCutDisk(tmp_path / "image", tmp_path / "disk")
    except CannotMountError as reason:
        pytest.skip(str(reason))
    try:
        yield disk
    finally:
        disk.close()


@pytest.mark.timeout(60 + 30 * CUTS)
def test_a_power_cut_loses_nothing_that_was_acknowledged(
    disk: PowerCutDisk, record_property: Callable[[str, object], None]
) -> None:
    rng = Random(CUTS)
    with BrokerSubprocess(disk.folder / "data") as broker:
        create_topic(broker.bootstrap, TOPIC, 2, {"segment.bytes": "65536"})
        with Load(broker.bootstrap, TOPIC, 2) as load:
            for _ in range(CUTS):
                load.wait_for(rng.randrange(300, 1500))
                if rng.random() < 0.5:
                    broker.restart()  # what it acknowledges to retries must be durable, too
                    load.wait_for(1)
                disk.cut_power()
                broker.kill()
                disk.unmount()
                disk.mount()
                broker.start()
            load.wait_for(300)
            load.finish()
        assert load.failures == []
        assert load.ledger.violations(consume_all(broker.bootstrap, TOPIC, 2)) == []
        assert broker.terminate() == 0
        assert load.ledger.violations(stored_on_disk(broker.data, TOPIC)) == []
    record_property("acknowledged", load.ledger.count)


def test_the_power_cut_is_a_real_one(disk: PowerCutDisk) -> None:
    """Under flush=interval the same cut loses acknowledged records: so the test above can fail."""
    settings = {"storage.flush": "interval", "storage.fsync_interval": "1h"}
    with BrokerSubprocess(disk.folder / "data", settings=settings) as broker:
        create_topic(broker.bootstrap, TOPIC, 1)
        assert produce_one(broker.bootstrap, TOPIC, value_of("p", 0)) == 0
        disk.cut_power()
        broker.kill()
        disk.unmount()
        disk.mount()
        broker.start()
        assert consume_all(broker.bootstrap, TOPIC, 1)[0] == []
