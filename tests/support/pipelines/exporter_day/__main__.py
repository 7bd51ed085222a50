"""Scrapes a fleet whose exporters misbehave in turn, runs the Spark jobs, and checks the tables.

    python -m tests.support.pipelines.exporter_day --hosts 250 --rounds 2880

That is a day of 2,000 cards.

A third of the exporters misbehave at any time: they hang, trickle, cut their pages short, answer
500, nothing or another page, or reset the connection. The clocks of some hosts are 70 s behind.
Scrapes are real HTTP, with a short deadline. Rounds follow each other at once, and their samples
are dated 30 s apart.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from barnabas.telemetry.collect.collecting import Collector
from barnabas.telemetry.collect.delivering import Delivery
from barnabas.telemetry.collect.pacing import MAX_SPEED, Pacer, RealClock
from barnabas.telemetry.collect.publishing import Publisher
from barnabas.telemetry.collect.scraping import Outage, Round, Scraped, Scraping
from barnabas.telemetry.collect.targets import Target
from barnabas.telemetry.samples import telemetry_topics as topics
from barnabas.telemetry.samples import topic_setup
from barnabas.telemetry.samples.readings import Tally
from barnabas.telemetry.samples.sample_messages import Layout, Snapshot, Tick
from barnabas.testing.process import BrokerSubprocess
from tests.support.pipelines.exporter_day.checking import Outages, check
from tests.support.pipelines.exporter_day.exporters import CARDS_A_HOST, HOST, Exporters

INTERVAL_S = 30
DEADLINE_S = 0.5
SKEW_S = 70
SKEWED_EVERY = 50
"""The clock of every host with a multiple of this number is behind."""
CLOSING_S = 600
SAY_EVERY = 100


def main() -> int:
    """Run a day; return 0 if there are no problems."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hosts", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=2880)
    parser.add_argument(
        "--folder", type=Path, help="the folder of the lake; a temporary one by default"
    )
    parser.add_argument(
        "--deadline", type=float, default=DEADLINE_S, help="seconds for a scrape; more if busy"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exporter-day-") as name:
        folder = given.folder or Path(name)
        with BrokerSubprocess(folder / "data") as broker:
            topic_setup.create_missing({"bootstrap.servers": broker.bootstrap})
            day = Day(given.hosts, given.rounds, given.deadline)
            scraped = day.scrape(broker.bootstrap)
            lake = folder / "lake"
            began_s = time.monotonic()
            command = [sys.executable, "-m", "barnabas.cli", "telemetry", "run", "--once"]
            command += ["--lake", str(lake), "--bootstrap", broker.bootstrap]
            subprocess.run(command, check=True, stdout=sys.stderr)
            scraped["seconds of jobs"] = round(time.monotonic() - began_s, 1)
        verdict = check(lake, given.hosts, given.rounds, INTERVAL_S, day.skewed, day.outages)
    report = {"cards": given.hosts * CARDS_A_HOST, "rounds": given.rounds, **scraped}
    sys.stdout.write(
        json.dumps({**report, **verdict.facts, "wrong": verdict.wrong}, indent=2) + "\n"
    )
    return 1 if verdict.wrong else 0


class Day:
    """The scrape rounds, and what the collector reported about them."""

    def __init__(self, hosts: int, rounds: int, deadline_s: float) -> None:
        self._hosts = hosts
        self._deadline_s = deadline_s
        self._rounds = rounds
        self._turn = -1
        self._began_ms = (time.time_ns() // 1_000_000) - (rounds + 60) * INTERVAL_S * 1000
        self.skewed = set(range(7, hosts, SKEWED_EVERY))
        self.outages = Outages()

    def scrape(self, bootstrap: str) -> dict[str, object]:
        """Scrape all exporters; return the results."""
        began_s = time.monotonic()
        exporters = Exporters(self._hosts, lambda: self._turn)
        hosts = {f"http://127.0.0.1:{port}/metrics": n for n, port in enumerate(exporters.ports)}
        delivery = Delivery({"bootstrap.servers": bootstrap})
        names = {"topic": topics.SAMPLES, "refused_topic": topics.REFUSED}
        publisher = Publisher(delivery, **names, source="day")
        pacer = Pacer(MAX_SPEED, RealClock())
        collector = Collector(
            publisher, pacer, layout=Layout.SNAPSHOT, source="day", tell=self.outages.told.append
        )
        targets = [Target(url=url) for url in hosts]
        rounds = Scraping(
            lambda: targets,
            interval_s=0.001,
            timeout_s=self._deadline_s,
            rounds=self._rounds,
            clock=RealClock(),
            tally=Tally(),
        )
        for item in rounds:
            if isinstance(item, Outage):
                self.outages.reasons[hosts[item.url], self._turn] = item.reason
            collector.take(self._dated(item))
        collector.take(Tick(timestamp_ms=self._now_ms + CLOSING_S * 1000, hostname=""))
        publisher.finish()
        exporters.close()
        return {
            "scrapes": collector.scrapes,
            "outages": sum(collector.outages.values()),
            "seconds of scraping": round(time.monotonic() - began_s, 1),
        }

    def _dated(self, item: Scraped) -> Scraped:
        """Date the samples with the simulated time of day, and begin a round."""
        match item:
            case Round():
                self._turn += 1
                if self._turn % SAY_EVERY == 0:
                    sys.stderr.write(f"round {self._turn} of {self._rounds}\n")
                return replace(item, skipped=0)
            case Snapshot():
                is_behind = int(item.hostname.removeprefix(HOST)) in self.skewed
                return replace(item, timestamp_ms=self._now_ms - is_behind * SKEW_S * 1000)
            case Tick():
                return replace(item, timestamp_ms=self._now_ms)
            case _:
                return item

    @property
    def _now_ms(self) -> int:
        return self._began_ms + self._turn * INTERVAL_S * 1000


if __name__ == "__main__":
    sys.exit(main())
