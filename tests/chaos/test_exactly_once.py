"""Read, transform, write with kills: the output is the input, once and in order.

The workers are processes that a user could have written. A read_committed reader watches from the
first record to the last. CHAOS_BOOTSTRAP selects another broker (see
`tests.support.loads.exactly_once_processes`).
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from tests.support.loads.exactly_once import transformed, violations
from tests.support.loads.exactly_once_load import (
    CommittedReader,
    Feed,
    committed_offsets,
    count_aborted,
    read_all,
)
from tests.support.loads.exactly_once_processes import Client, Cluster, any_cluster, worker
from tests.support.loads.load import create_topic

pytestmark = pytest.mark.chaos

KILLS = int(os.environ.get("CHAOS_EXACTLY_ONCE_KILLS", "50"))
PARTITIONS = 4
RATE_PER_S = 400
MOMENTS = ("begun", "written", "offsets", "committed", "aborted")
HANDOVER_EVERY = 8
SURE_SHARE = 0.5


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with any_cluster(tmp_path / "data") as found:
        yield found


class Scene:
    """Two workers of one group between a feed and a reader, and their faults."""

    def __init__(self, cluster: Cluster, stack: ExitStack, protocol: str, seed: int) -> None:
        name = f"exactly-once-{uuid4().hex[:8]}"
        self.source, self.target, self.group = f"{name}-in", f"{name}-out", name
        self.kills: Counter[str] = Counter()
        self.handovers = 0
        self._cluster = cluster
        self._rng = Random(seed)
        bootstrap = cluster.bootstrap
        for topic in (self.source, self.target):
            create_topic(bootstrap, topic, PARTITIONS, {"segment.bytes": "1048576"})
        self.reader = stack.enter_context(CommittedReader(bootstrap, self.target, PARTITIONS))
        self.feed = stack.enter_context(
            Feed(bootstrap, self.source, PARTITIONS, rate_per_s=RATE_PER_S)
        )
        arguments = {"source": self.source, "target": self.target, "group": self.group}
        self.workers = [
            stack.enter_context(worker(bootstrap, side, {**arguments, "protocol": protocol}))
            for side in ("left", "right")
        ]
        self.reader.wait_for_each()

    def kill_client(self) -> Client:
        """Kill a worker: certainly inside a transaction, or around a line that it prints."""
        chosen = self._rng.choice(self.workers)
        chosen.wait_for(self._rng.choice(MOMENTS))
        if self._rng.random() < SURE_SHARE:
            chosen.die_in_next_step()
        else:
            chosen.kill()
        self.kills["client"] += 1
        return chosen

    def kill_broker(self) -> None:
        """Kill the broker just after some step of a worker, if the test may do that."""
        if self._cluster.restart is None:
            self.kill_client().start()
            return
        chosen = self._rng.choice(self.workers)
        chosen.wait_for(self._rng.choice(MOMENTS))
        self._cluster.restart()
        self.kills["broker"] += 1

    def kill_both(self) -> None:
        """Kill a worker, and the broker before the worker is back."""
        victim = self.kill_client()
        if self._cluster.restart is not None:
            self._cluster.restart()
            self.kills["broker"] += 1
        victim.start()

    def hand_over(self) -> None:
        """Kill a worker, and let the other one get its partitions before it is back."""
        victim = self.kill_client()
        (heir,) = (each for each in self.workers if each is not victim)
        heir.wait_for(f"owns {PARTITIONS}")
        self.reader.wait_for_each()
        victim.start()
        self.handovers += 1

    def work_on(self, most: int) -> None:
        """Wait until some records are processed."""
        self.reader.wait_for(self._rng.randrange(1, most))

    def finish(self) -> None:
        """Stop the feed, wait until everything is processed, stop the workers."""
        self.feed.finish()
        self.reader.wait_for_all(self.feed.count)
        assert [each.terminate() for each in self.workers] == [0, 0]

    def check(self) -> None:
        """Compare what was read, during the test and now, with what was sent."""
        bootstrap = self._cluster.bootstrap
        sent = self.feed.sent()
        assert violations(sent, read_all(bootstrap, self.source, PARTITIONS)) == []
        wanted = {place: [transformed(value) for value in sent[place]] for place in sent}
        assert violations(wanted, self.reader.seen) == []
        assert read_all(bootstrap, self.target, PARTITIONS) == self.reader.seen
        places = committed_offsets(bootstrap, self.group, self.source, PARTITIONS)
        assert places == {place: len(values) for place, values in sent.items()}

    def figures(self) -> Iterator[tuple[str, object]]:
        """Record how much was checked; fail if no aborted records were written."""
        everything = read_all(self._cluster.bootstrap, self.target, PARTITIONS, "read_uncommitted")
        written = sum(map(len, everything.values()))
        assert count_aborted(everything) > 0
        said = sum((each.said for each in self.workers), Counter[str]())
        yield from ((f"kills of {name}", count) for name, count in self.kills.items())
        yield "handovers", self.handovers
        yield "records", self.reader.count
        yield "aborted on purpose", count_aborted(everything)
        yield "cut off by kills", written - self.reader.count - count_aborted(everything)
        yield "transactions", said["committed"] + said["aborted"]
        yield "given up", said["failed"]
        yield "fenced", said["fenced"]
        yield "stuck", said["stuck"]
        bearable = len(self.workers) * self.kills["broker"] if self._cluster.several else 0
        assert said["stuck"] <= bearable, "no broker was down permanently"


def test_a_loop_survives_kills_of_workers_and_broker(
    cluster: Cluster, record_property: Callable[[str, object], None]
) -> None:
    with ExitStack() as stack:
        scene = Scene(cluster, stack, "classic", seed=4)  # one that kills inside transactions
        scene.kill_client().start()
        scene.work_on(400)
        scene.kill_broker()
        scene.work_on(400)
        scene.hand_over()
        scene.finish()
        scene.check()
    for name, value in scene.figures():
        record_property(name, value)


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "kills"), [("classic", KILLS), ("consumer", KILLS * 2 // 5)])
@pytest.mark.timeout(300 + 30 * KILLS)
def test_a_loop_killed_many_times_is_exact(
    cluster: Cluster, protocol: str, kills: int, record_property: Callable[[str, object], None]
) -> None:
    began = time.monotonic()
    rng = Random(kills)
    with ExitStack() as stack:
        scene = Scene(cluster, stack, protocol, seed=kills)
        faults = (lambda: scene.kill_client().start(), scene.kill_broker, scene.kill_both)
        for turn in count(1):
            if scene.kills.total() >= kills:
                break
            fault = scene.hand_over if turn % HANDOVER_EVERY == 0 else rng.choice(faults)
            fault()
            scene.work_on(400)
        scene.finish()
        scene.check()
    for name, value in scene.figures():
        record_property(name, value)
    record_property("seconds", round(time.monotonic() - began))
