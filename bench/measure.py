"""Runs the single-broker benchmark: for each round, each broker, each row.

In a round each broker gets a fresh data directory, is started, warmed up, taken through all rows,
stopped, and started once more with data in place. One broker runs at a time. A row that fails is a
sample with a reason; the broker is then checked, and started afresh if it no longer answers.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

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
"""After so many failed starts in a visit the remaining rows are given up."""

Begin = Callable[[str], None]
"""Called with the name of what starts now."""

WARM_UP: tuple[Load, ...] = (JavaProduce(size=100), Requests(connections=16), Consume(size=1024))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run, and for how long each row presses."""

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
        return self.rounds * len(self.brokers) * (len(self.rows) + self.with_broker_row)


def run(plan: Plan, begin: Begin) -> Generator[Sample]:
    """All samples, as they come; closing it stops the broker that runs."""
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
        """Memory and start-up, gathered on the way."""

    def run(self) -> Generator[Sample]:
        """Start, go through the rows, stop; whatever happens the broker is stopped."""
        with ExitStack() as stack:
            broker: Running | None = None
            for row in self._plan.rows:
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
        """The broker, started or started again where it no longer answers."""
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
        """Memory and start-up: gathered so far, and a second start with data in place."""
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
        """A fresh start; the first of a visit is the one that is reported."""
        data, port = fresh_data(self._broker), free_port()
        self._broker.prepare(data, port)
        broker = stack.enter_context(running(self._broker, data, port))
        if "fresh_ms" not in self._about:
            time.sleep(IDLE_S)
            self._about["fresh_ms"] = broker.ready_ms
            self._about["idle_mb"] = broker.usage().resident_mb
        self._warm_up(broker)
        return broker

    def _warm_up(self, broker: Running) -> None:
        """Kafka's JVM compiles what it runs often; both brokers get the same chance to."""
        for load in WARM_UP:
            with suppress(LoadError):
                self._press_load(broker, load, 1, Flush.LATER)

    def _press(self, broker: Running, row: Row) -> Figures:
        warm_memory(row.warm_gb)
        config = self._broker.topic_config(row.flush)
        with broker.internal_topics(row.internal_topics, config):
            if not row.has_output:
                return self._press_load(broker, row.load, row.partitions, row.flush)
            with broker.topic(f"output-{self._topics + 1}", row.partitions, config) as output:
                return self._press_load(broker, row.load, row.partitions, row.flush, output)

    def _press_load(
        self, broker: Running, load: Load, partitions: int, flush: Flush, output: str = ""
    ) -> Figures:
        self._topics += 1
        config = self._broker.topic_config(flush)
        with broker.topic(f"bench-{self._topics}", partitions, config) as topic:
            return load.run(self._target(broker, topic, partitions, output))

    def _target(self, broker: Running, topic: str, partitions: int, output: str = "") -> Target:
        return Target(
            port=broker.port,
            topic=topic,
            partitions=partitions,
            output=output,
            seconds=self._plan.seconds,
            warmup=self._plan.warmup,
            cpu_s=lambda: broker.usage().cpu_s,
        )

    def _fill(self, broker: Running) -> None:
        """Data to find again at the second start; its topic is left in place."""
        config = self._broker.topic_config(Flush.LATER)
        broker.create_topic("bench-kept", RESTART_PARTITIONS, config)
        fill(self._target(broker, "bench-kept", RESTART_PARTITIONS), 1024)

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
    """What the table says of a failure; ours explain themselves, others need their kind."""
    return str(error) if isinstance(error, LoadError) else f"{type(error).__name__}: {error}"
