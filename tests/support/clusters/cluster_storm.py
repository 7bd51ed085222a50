"""Runs a storm: faults of every class on a cluster of real processes under load, then the checks.

    python -m tests.support.clusters.cluster_storm --faults 50 --seed 1 --records 10000000

The seed draws classes in rounds, so that an interrupted run has about as many faults of each
class. Targets are the leader of a partition, a follower of it, or the controller. After each fault
every node must run and see a complete cluster again. Two classes consist of others: a pair is two
faults that overlap, a rolling restart is a clean stop of each node in turn.

With `--secure` the cluster has TLS, SASL and ACLs (`cluster_security.py`): brokers verify each
other, each kind of client is a user with few rights, and certificates and quotas change.

It exits with 0 if there are no problems, and always writes a report. After SIGTERM it finishes the
current fault and runs the checks. Zero problems in n faults bound the probability of a problem per
fault at about 3 / n; they prove nothing.
"""

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.process import BrokerFailedError
from barnabas.testing.waiting import eventually
from tests.support.clusters import cluster_check
from tests.support.clusters.cluster_faults import FAULTS, Fault, Scene, revive
from tests.support.clusters.cluster_ground import SECURITY, Ground
from tests.support.clusters.cluster_replicas import check_copies, copies_of
from tests.support.clusters.cluster_security import ClusterSecurity, SecuredProcesses
from tests.support.clusters.cluster_security_faults import RELOAD, SECURITY_FAULTS, WRONG
from tests.support.clusters.cluster_workload import LEDGER, LOAD, Crowd, Workload

NODES = (1, 2, 3)
ROLES = ("leader", "follower", "controller")
PAIR = "pair"
ROLLING = "rolling restart"
HEALTHY_S = 90.0
SCRUB_INTERVAL = "60s"
SCRUBBED = "checked all stored records"
SCRUBBED_S = 300.0
PROGRESS = 200
"""The number of acknowledgements that must follow each fault."""
LOG_SHOWN = 3000
CLASSES: dict[str, Callable[[], Fault]] = {**FAULTS, **SECURITY_FAULTS}
REFUSALS = ("AUTHORIZATION", "AUTHENTICATION")
"""What errors of clients say whose rights or passwords are not enough."""
BROKEN_CONNECTION = "BROKER TRANSPORT FAILURE"
"""In the error of librdkafka where the connection ended in the middle of a login: no refusal."""


def is_refusal(error: str) -> bool:
    """Tell whether a broker refused a client, by the text of the client's error."""
    text = error.upper()
    return BROKEN_CONNECTION not in text and any(word in text for word in REFUSALS)


class Storm:
    """One cluster, its clients and its faults."""

    def __init__(
        self,
        scene: Scene,
        load: Workload,
        tell: Callable[[str], object],
        ending: threading.Event,
    ) -> None:
        self._scene = scene
        self._load = load
        self._tell = tell
        self._rng = scene.rng
        self.events: list[dict[str, Any]] = []
        self.stuck = False
        self.ending = ending

    def run(self, names: Sequence[str]) -> None:
        """Run fault after fault, until one leaves a cluster that does not recover."""
        for name in names:
            if self.stuck or self.ending.is_set():
                return
            self._one(name)

    def _one(self, name: str) -> None:
        scene = self._scene
        role = self._rng.choice(ROLES)
        try:
            number = self._target(role)
        except AssertionError as error:
            scene.problems.append(f"{name}: there is no {role}: {error}")
            self.stuck = True
            return
        scene.notes.clear()
        known = len(scene.problems)
        begun, acked = time.monotonic(), self._load.acknowledged
        if name == ROLLING:
            self._roll()
        elif name == PAIR:
            self._pair(number)
        else:
            self._inflict(CLASSES[name](), number)
        self._recover(name)
        event = {
            "fault": name,
            "role": role,
            "node": number,
            "notes": list(scene.notes),
            "seconds": round(time.monotonic() - begun, 2),
            "acknowledged": self._load.acknowledged - acked,
            "problems": scene.problems[known:],
        }
        self.events.append(event)
        self._tell(json.dumps(event))

    def _inflict(self, fault: Fault, number: int) -> None:
        fault.begin(self._scene, number)
        _wait(self._rng.uniform(*fault.hold_s))
        self._finish(fault, number)

    def _finish(self, fault: Fault, number: int) -> None:
        try:
            fault.end(self._scene, number)
        except BrokerFailedError as error:
            self._scene.problems.append(f"node {number} does not start: {str(error)[-LOG_SHOWN:]}")

    def _pair(self, first: int) -> None:
        """Two faults that overlap: on two nodes, so that there is no majority, or on one."""
        allowed = [name for name in CLASSES if not self._missing(name)]
        names = self._rng.sample(allowed, 2)
        while not compatible(*names):
            names = self._rng.sample(allowed, 2)
        second = self._rng.choice(self._scene.others(first))
        faults = [(CLASSES[names[0]](), first), (CLASSES[names[1]](), second)]
        self._scene.notes.append(f"{names[0]} on {first}, {names[1]} on {second}")
        for fault, number in faults:
            fault.begin(self._scene, number)
            _wait(self._rng.uniform(0, fault.hold_s[1] / 2))
        self._rng.shuffle(faults)
        for fault, number in faults:
            self._finish(fault, number)
            _wait(self._rng.uniform(0, 1))

    def _roll(self) -> None:
        for number in self._rng.sample(NODES, len(NODES)):
            self._inflict(FAULTS["clean stop"](), number)
            self._recover(ROLLING)

    def _recover(self, name: str) -> None:
        scene = self._scene
        for number, node in scene.cluster.nodes.items():
            if not node.running:
                scene.problems.append(
                    f"{name}: node {number} ended with {node.wait()}: "
                    f"{node.log_text()[-LOG_SHOWN:]}"
                )
                revive(scene, number)
        try:
            scene.cluster.wait_healthy((LOAD, LEDGER), HEALTHY_S)
            self._load.wait_for(PROGRESS)
            if scene.security is not None:
                scene.security.wait_served(scene.cluster.nodes)
        except AssertionError as error:
            scene.problems.append(f"{name}: {error}")
            self.stuck = True

    def _target(self, role: str) -> int:
        cluster = self._scene.cluster
        partition = self._rng.randrange(self._load.crowd.partitions)
        if role == "controller":
            return cluster.controller()
        if role == "leader":
            return cluster.leader_of(LOAD, partition)
        return cluster.follower_of(LOAD, partition)

    def _missing(self, name: str) -> bool:
        return CLASSES[name]().needs in self._scene.ground.missing


def compatible(first: str, second: str) -> bool:
    """Whether two faults at a time damage at most a minority of nodes, which can be repaired.

    A reload on all nodes would repair a wrong certificate.
    """
    return "bit flip" not in (first, second) and {first, second} != {RELOAD, WRONG}


def drawn(rng: Random, count: int, allowed: Sequence[str]) -> list[str]:
    """Return the given number of faults of each class, in separately shuffled rounds."""
    names: list[str] = []
    for _ in range(count):
        names += rng.sample(allowed, len(allowed))
    return names


def _wait(seconds: float) -> None:
    until = time.monotonic() + seconds
    eventually(lambda: time.monotonic() >= until, seconds + 10)


@contextmanager
def fresh_scene(
    folder: Path, seed: int, settings: dict[str, object], *, secure: bool = False
) -> Iterator[Scene]:
    """Build the environment and start a cluster in it."""
    with Ground(folder, NODES) as ground:
        data = {number: ground.data(number) for number in NODES}
        environments = {n: each.environment for n, each in ground.controls.items()}
        security, cluster = None, None
        if secure:
            security = ClusterSecurity(folder, ground.place, NODES)
            cluster = SecuredProcesses(
                folder, security, settings=settings, data=data, environments=environments
            )
        else:
            ground.missing[SECURITY] = "the storm runs without --secure"
        with cluster or ClusterProcesses(
            folder,
            brokers=len(NODES),
            settings=settings,
            place=ground.place,
            data=data,
            environments=environments,
        ) as started:
            yield Scene(started, ground, Random(seed), security=security)


def storm(  # noqa: PLR0913 - the options of the command line
    folder: Path,
    *,
    faults: int,
    seed: int,
    crowd: Crowd,
    records: int = 0,
    only: Sequence[str] = (),
    secure: bool = False,
    tell: Callable[[str], object] = print,
    ending: threading.Event | None = None,
) -> dict[str, Any]:
    """Run a whole storm in a folder, or until it is stopped; return the report."""
    settings: dict[str, object] = {
        "storage.verify_on_start": "true",
        "storage.scrub_interval": SCRUB_INTERVAL,
    }
    with fresh_scene(folder, seed, settings, secure=secure) as scene:
        classes = [*CLASSES, ROLLING, PAIR]
        missing = scene.ground.missing
        allowed = [n for n in classes if n not in CLASSES or CLASSES[n]().needs not in missing]
        allowed = [name for name in allowed if not only or name in only]
        bootstrap = scene.cluster.bootstrap
        if scene.security is not None:
            bootstrap = scene.security.bootstrap
        with Workload(bootstrap, folder / "ledgers", crowd, scene.security) as load:
            scene.cluster.wait_healthy((LOAD, LEDGER))
            load.wait_for(PROGRESS)
            blowing = Storm(scene, load, tell, ending or threading.Event())
            blowing.run(drawn(scene.rng, faults, allowed))
            if not blowing.stuck and not blowing.ending.is_set() and load.acknowledged < records:
                load.wait_for(records - load.acknowledged, 7200)
            return _report(scene, load, blowing, missing)


def _report(
    scene: Scene, load: Workload, blowing: Storm, missing: dict[str, str]
) -> dict[str, Any]:
    if not blowing.stuck:
        _let_damage_be_found(scene)
    for number, node in scene.cluster.nodes.items():
        (load.folder / f"node-{number}.log").write_text(node.log_text())
    load.finish()
    verdict = load.verdict()
    problems = scene.problems + verdict.problems
    told = [*load.errors(), *load.retried()]
    problems += [each for each in told if is_refusal(each)]
    ends = load.high_watermarks()
    codes = scene.cluster.stop()
    problems += [f"node {n} ended with {code}" for n, code in codes.items() if code]
    data = {number: node.data for number, node in scene.cluster.nodes.items()}
    for (topic, partition), end in ends.items():
        copies = copies_of(data, topic, partition)
        if len(copies) < load.crowd.copies:
            problems.append(f"{topic}-{partition}: copies only on {sorted(copies)}")
        found = check_copies(copies, end)
        problems += [f"{topic}-{partition}: {problem}" for problem in found]
    return {
        "faults": dict(Counter(event["fault"] for event in blowing.events)),
        "missing": missing,
        **asdict(verdict),
        "problems": problems,
        "unseen": unseen(),
        "events": blowing.events,
    }


def unseen() -> str:
    """Return what the checks cannot detect, as their documentation says."""
    return (cluster_check.__doc__ or "").partition("The checks cannot detect: ")[2].strip()


def _let_damage_be_found(scene: Scene) -> None:
    """Wait until every node has read all of its data, and has repaired the damage that it found."""
    nodes = scene.cluster.nodes.values()
    wanted = {
        node: len(node.log_lines(SCRUBBED)) + 2 for node in nodes
    }  # a scrub may be in progress
    try:
        for node, count in wanted.items():
            node.wait_for_log(SCRUBBED, count, SCRUBBED_S)
        scene.cluster.wait_healthy((LOAD, LEDGER), HEALTHY_S)
    except AssertionError as error:
        scene.problems.append(f"the last look for damage: {error}")


def main() -> int:
    """Read the command line, run the storm, and write the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=int, default=1, help="faults of each class")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--records", type=int, default=0, help="the minimum of acknowledged records"
    )
    parser.add_argument("--rate", type=int, default=2000, help="records per second and producer")
    parser.add_argument("--producers", type=int, default=2)
    parser.add_argument("--secure", action="store_true", help="with TLS, SASL and ACLs")
    parser.add_argument("--only", default="", help="classes, separated by commas")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    crowd = Crowd(producers=options.producers, rate=options.rate, transactors=2)
    only = [name for name in options.only.split(",") if name]
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as spare:
        folder = options.work or Path(spare)
        report = storm(
            folder,
            faults=options.faults,
            seed=options.seed,
            crowd=crowd,
            records=options.records,
            only=only,
            secure=options.secure,
            tell=_say,
            ending=ending,
        )
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(json.dumps(report, indent=1))
    _say(json.dumps({key: value for key, value in report.items() if key != "events"}, indent=1))
    return 1 if report["problems"] else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
