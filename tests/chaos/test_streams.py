"""A Kafka Streams application counts every record once while it or its brokers are killed.

`java/WindowedCount.java` is a plain application: `exactly_once_v2`, a repartition topic, a store
with its changelog. CHAOS_BOOTSTRAP selects another broker (see
`tests.support.loads.exactly_once_processes`).
"""

import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from tests.support.loads.exactly_once import (
    count_violations,
    violations,
    window_counts,
)
from tests.support.loads.exactly_once_load import CommittedReader, Feed, read_all
from tests.support.loads.exactly_once_processes import Client, Cluster, any_cluster
from tests.support.loads.load import create_topic

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

JAVA = Path(__file__).parent / "java"
JARS = Path(__file__).parents[2] / "build" / "streams"
KILLS = 10
BROKER_KILLS = 6
PARTITIONS = 4
RATE_PER_S = 200
WINDOW_MS = 5000
SETTINGS = {
    "processing.guarantee": "exactly_once_v2",
    "commit.interval.ms": "100",
    "num.stream.threads": "2",
    # Without a cache each record writes its count, so that a gap or a repeat can be seen.
    "statestore.cache.max.bytes": "0",
    # The next process gets the partitions of a killed one sooner.
    "consumer.session.timeout.ms": "6000",
    "consumer.heartbeat.interval.ms": "1000",
    "producer.transaction.timeout.ms": "5000",
}
JVM = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Fetch Kafka Streams once and compile the application, or say why it cannot run."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if not list(JARS.glob("kafka-streams-*.jar")):
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        command = ["mvn", "-q", "-B", "-f", str(JAVA / "pom.xml"), *goal]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        if done.returncode:
            pytest.skip(f"Maven could not fetch Kafka Streams: {done.stdout.strip()[:200]}")
    classes = tmp_path_factory.mktemp("classes")
    source = str(JAVA / "WindowedCount.java")
    subprocess.run(["javac", "-cp", f"{JARS}/*", "-d", str(classes), source], check=True)
    return f"{classes}:{JARS}/*"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with any_cluster(tmp_path / "data") as found:
        yield found


class Scene:
    """An application between a feed and a reader, and its faults."""

    def __init__(self, cluster: Cluster, stack: ExitStack, classpath: str, folder: Path) -> None:
        name = f"streams-{uuid4().hex[:8]}"
        self.source, self.target = f"{name}-in", f"{name}-out"
        self.kills: Counter[str] = Counter()
        self._cluster = cluster
        self._rng = Random(KILLS)
        self._name, self._classpath, self._folder = name, classpath, folder
        bootstrap = cluster.bootstrap
        for topic in (self.source, self.target):
            create_topic(bootstrap, topic, PARTITIONS)
        self.reader = stack.enter_context(CommittedReader(bootstrap, self.target, PARTITIONS))
        self.feed = stack.enter_context(
            Feed(bootstrap, self.source, PARTITIONS, rate_per_s=RATE_PER_S)
        )
        self.application = stack.enter_context(Client("streams", self._command))

    def _command(self, life: int) -> list[str]:
        """Every second life finds the state of the one before it; the others start without."""
        given = {
            **SETTINGS,
            "application.id": self._name,
            "bootstrap.servers": self._cluster.bootstrap,
            "state.dir": self._folder / f"state-{life // 2}",
        }
        file = self._folder / "streams.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        arguments = [str(file), self.source, self.target, str(WINDOW_MS)]
        return ["java", *JVM, "-cp", self._classpath, "WindowedCount", *arguments]

    def kill(self, *, broker: bool) -> None:
        """Kill the application under load, and the broker with it if the test may do that."""
        self.reader.wait_for(self._rng.randrange(100, 800))
        self.application.kill()
        self.kills["client"] += 1
        if broker:
            self._restart_broker()
        self.application.start()

    def kill_broker(self) -> None:
        """Kill a broker under a running application, if the test may do that."""
        self.reader.wait_for(self._rng.randrange(100, 800))
        self._restart_broker()

    def _restart_broker(self) -> None:
        if self._cluster.restart is not None:
            self._cluster.restart()
            self.kills["broker"] += 1

    def finish(self) -> None:
        """Stop the feed, wait until everything is counted, stop the application."""
        self.reader.wait_for(100)
        self.feed.finish()
        self.reader.wait_for_all(self.feed.count)
        self.application.terminate()

    def check(self) -> int:
        """Compare every written count with the input; return the number of windows."""
        bootstrap = self._cluster.bootstrap
        fed = read_all(bootstrap, self.source, PARTITIONS)
        assert violations(self.feed.sent(), fed) == []
        grouped = (
            seen._replace(key=b"count-" + seen.key) for content in fed.values() for seen in content
        )
        counts = window_counts(grouped, WINDOW_MS)
        assert count_violations(counts, self.reader.seen) == []
        assert read_all(bootstrap, self.target, PARTITIONS) == self.reader.seen
        return len(counts)


@pytest.mark.parametrize("both", [(), (1, 2, 5, 6, 9)], ids=["client", "client-and-both"])
@pytest.mark.timeout(300 + 60 * KILLS)
def test_a_streams_application_counts_exactly(
    cluster: Cluster,
    classpath: str,
    both: tuple[int, ...],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    began = time.monotonic()
    with ExitStack() as stack:
        scene = Scene(cluster, stack, classpath, tmp_path)
        for number in range(KILLS):
            scene.kill(broker=number in both)
        scene.finish()
        windows = scene.check()
    record_figures(scene, windows, began, record_property)


@pytest.mark.timeout(300 + 60 * BROKER_KILLS)
def test_a_streams_application_survives_its_brokers(
    cluster: Cluster,
    classpath: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    if cluster.restart is None:
        pytest.skip("the test may not kill these brokers")
    began = time.monotonic()
    with ExitStack() as stack:
        scene = Scene(cluster, stack, classpath, tmp_path)
        for _ in range(BROKER_KILLS):
            scene.kill_broker()
        scene.finish()
        windows = scene.check()
        assert scene.application.lives == 1
    record_figures(scene, windows, began, record_property)


def record_figures(
    scene: Scene, windows: int, began: float, record_property: Callable[[str, object], None]
) -> None:
    """Record how much was checked."""
    for name, value in scene.kills.items():
        record_property(f"kills of {name}", value)
    record_property("records", scene.reader.count)
    record_property("windows", windows)
    record_property("seconds", round(time.monotonic() - began))
