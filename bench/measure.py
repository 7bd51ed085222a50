"""Runs the single-broker benchmark: for each round, each broker, each row.

In a round each broker gets a fresh data directory, is started, warmed up, runs all rows, is
stopped, and started once more with data in place. One broker runs at a time. A row that fails is a
sample with a reason; the broker is then checked, and restarted if it does not answer.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from bench.access import Listener
from bench.brokers import Broker, Flush, free_port, fresh_data
from bench.java_loads import JavaProduce
from bench.loads import Consume, Figures, Load, Requests, Target, fill
from bench.machine import warm_memory
from bench.process import LoadError
from bench.report import BROKER_ROW
from bench.results import Sample
from bench.row import Row
from bench.running import Running, answers_metadata, running

IDLE_S = 2.0
RESTART_PARTITIONS = 10
STARTS_MAX = 2
"""After so many failed starts in a round the remaining rows are skipped."""

Begin = Callable[[str], None]
"""Called with the name of the next row."""

WARM_UP: tuple[Load, ...] = (JavaProduce(size=100), Requests(connections=16), Consume(size=1024))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run, and how long each row runs."""

    rows: Sequence[Row]
    brokers: Sequence[Broker]
    rounds: int
    seconds: float
    warmup: float
    with_broker_row: bool
    """Whether memory and start-up are measured too."""

    @property
    def steps(self) -> int:
        """How many samples a whole run has."""
        rows = sum(len(self.rows_of(broker)) + self.with_broker_row for broker in self.brokers)
        return self.rounds * rows

    def rows_of(self, broker: Broker) -> list[Row]:
        """The rows that run on a broker."""
        return [row for row in self.rows if row.setup is broker.setup]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A load, its topic, and where its clients connect."""

    load: Load
    partitions: int = 1
    flush: Flush = Flush.LATER
    listener: Listener = Listener.PLAINTEXT


def run(plan: Plan, begin: Begin) -> Generator[Sample]:
    """All samples, as they come; closing it stops the running broker."""
    for number in range(1, plan.rounds + 1):
        order = plan.brokers if number % 2 else list(reversed(plan.brokers))
        for broker in order:
            yield from Visit(plan, broker, number, begin).run()


class Visit:
    """One broker in one round."""

    def __init__(self, plan: Plan, broker: Broker, number: int, begin: Begin) -> None:
        self._plan = plan
        self._broker = broker
        self._number = number
        self._tell = begin
        self._topics = 0
        self._failed_starts = 0
        self._about: Figures = {}
        """Memory and start-up times, collected during the round."""

    def run(self) -> Generator[Sample]:
        """Start, run the rows, stop; the broker is always stopped."""
        with ExitStack() as stack:
            broker: Running | None = None
            for row in self._plan.rows_of(self._broker):
                self._begin(row.title, row.section)
                try:
                    broker = self._at_work(stack, broker)
                    sample = self._sample(row.key, self._press(broker, row))
                except Exception as error:  # noqa: BLE001 - whatever fails, the other rows go on
                    sample = self._sample(row.key, {}, reason(error))
                yield sample
            if self._plan.with_broker_row:
                yield self._broker_row(stack, broker)
        fresh_data(self._broker)

    def _at_work(self, stack: ExitStack, broker: Running | None) -> Running:
        """The running broker, restarted if it does not answer."""
        if broker is not None and answers_metadata(broker.port):
            return broker
        stack.close()
        if self._failed_starts >= STARTS_MAX:
            raise LoadError("the broker does not start")
        self._failed_starts += 1
        broker = self._start(stack)
        self._failed_starts = 0
        return broker

    def _broker_row(self, stack: ExitStack, broker: Running | None) -> Sample:
        """Memory and start-up: collected so far, and a second start with data in place."""
        self._begin("memory and start-up")
        try:
            broker = self._at_work(stack, broker)
            self._about["loaded_mb"] = broker.usage().resident_max_mb
            self._fill(broker)
            stack.close()
            with running(self._broker, broker.data, broker.port) as again:
                self._about["again_ms"] = again.ready_ms
        except Exception as error:  # noqa: BLE001 - as above
            return self._sample(BROKER_ROW, self._about, reason(error))
        return self._sample(BROKER_ROW, self._about)

    def _start(self, stack: ExitStack) -> Running:
        """Measure a fresh start; the first of a round is reported."""
        data, port = fresh_data(self._broker), free_port()
        self._broker.prepare(data, port)
        broker = stack.enter_context(running(self._broker, data, port))
        if "fresh_ms" not in self._about:
            time.sleep(IDLE_S)
            self._about["fresh_ms"] = broker.ready_ms
            self._about["idle_mb"] = broker.usage().resident_mb
        self._broker.set_up(broker.address)
        self._warm_up(broker)
        return broker

    def _warm_up(self, broker: Running) -> None:
        """Warm up: Kafka's JVM compiles hot code; both brokers get the same warm-up.

        The listener with the most rows gets all of it, the others requests.
        """
        listeners = [row.listener for row in self._plan.rows_of(self._broker)]
        ordered = sorted(dict.fromkeys(listeners), key=listeners.count, reverse=True)
        first = ordered[0] if ordered else Listener.PLAINTEXT
        loads: list[tuple[Load, Listener]] = [(load, first) for load in WARM_UP]
        loads += [(Requests(connections=16), listener) for listener in ordered[1:]]
        for load, listener in loads:
            with suppress(LoadError):
                self._press_load(broker, Shape(load=load, listener=listener))

    def _press(self, broker: Running, row: Row) -> Figures:
        warm_memory(row.warm_gb)
        config = self._broker.topic_config(row.flush)
        shape = Shape(
            load=row.load, partitions=row.partitions, flush=row.flush, listener=row.listener
        )
        with broker.internal_topics(row.internal_topics, config):
            if not row.has_output:
                return self._press_load(broker, shape)
            with broker.topic(f"output-{self._topics + 1}", row.partitions, config) as output:
                return self._press_load(broker, shape, output)

    def _press_load(self, broker: Running, shape: Shape, output: str = "") -> Figures:
        self._topics += 1
        config = self._broker.topic_config(shape.flush)
        with broker.topic(f"bench-{self._topics}", shape.partitions, config) as topic:
            return shape.load.run(self._target(broker, topic, shape, output))

    def _target(self, broker: Running, topic: str, shape: Shape, output: str = "") -> Target:
        entry = self._broker.entry(shape.listener, broker.port)
        return Target(
            port=entry.port,
            topic=topic,
            partitions=shape.partitions,
            output=output,
            seconds=self._plan.seconds,
            warmup=self._plan.warmup,
            cpu_s=lambda: broker.usage().cpu_s,
            access=entry.access,
        )

    def _fill(self, broker: Running) -> None:
        """Write data for the second start; its topic stays."""
        config = self._broker.topic_config(Flush.LATER)
        broker.create_topic("bench-kept", RESTART_PARTITIONS, config)
        shape = Shape(load=Consume(size=1024), partitions=RESTART_PARTITIONS)
        fill(self._target(broker, "bench-kept", shape), 1024)

    def _begin(self, title: str, section: str = "") -> None:
        where = f"round {self._number}/{self._plan.rounds}, {self._broker.name}"
        self._tell(f"{where}: {section + ': ' if section else ''}{title}")

    def _sample(self, row: str, figures: Figures, error: str = "") -> Sample:
        return Sample(
            row=row,
            broker=self._broker.name,
            round=self._number,
            figures=figures,
            error=error,
        )


def reason(error: Exception) -> str:
    """The text of a failure for the table; our own errors explain themselves, others need their
    type.
    """
    return str(error) if isinstance(error, LoadError) else f"{type(error).__name__}: {error}"
