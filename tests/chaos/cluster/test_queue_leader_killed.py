"""Tests a work queue on three brokers whose leader is killed: every message is done."""

import threading
from collections import Counter
from pathlib import Path

import pytest

from barnabas.client import LockLostError, Queue
from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.waiting import eventually

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

COUNT = 600


@pytest.mark.timeout(180)
def test_every_message_is_done_although_a_leader_dies(tmp_path: Path) -> None:
    settings = {"cluster.broker_session_timeout": "2s"}
    done: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    lock = threading.Lock()

    with ClusterProcesses(tmp_path, settings=settings) as cluster:
        bootstrap = cluster.bootstrap
        with Queue.create("jobs", bootstrap, partitions=3, replication_factor=3) as queue:
            half = threading.Event()

            def work() -> None:
                with Queue("jobs", bootstrap, prefetch=5) as mine:
                    while len(done) < COUNT:
                        for message in mine.take_batch(5, 0.5):
                            with lock:
                                done[message.text] += 1
                            message.ack()
                            if len(done) >= COUNT // 3:
                                half.set()
                        try:
                            mine.flush(60)
                        except LockLostError as error:
                            with lock:
                                lost.update(str(each) for each in error.offsets)

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            queue.put_many([f"{each}" for each in range(COUNT // 2)])
            assert half.wait(60)
            leader = cluster.leader_of("jobs", 0)
            cluster.nodes[leader].kill()
            queue.put_many([f"{each}" for each in range(COUNT // 2, COUNT)])
            for thread in threads:
                thread.join(120)
            assert set(done) == {f"{each}" for each in range(COUNT)}
            assert sum(done.values()) - COUNT <= sum(lost.values()) + 3 * 5 * 3
            eventually(lambda: queue.stats().depth == 0, 60)
