"""A cluster on this computer: which brokers, where they listen, remembered in its folder.

    DIR/cluster.json     what is written here
    DIR/1, DIR/2, ...    the data of each broker
    DIR/1.log, ...       what each has said
    DIR/1.pid, ...       the process that runs it, or ran it last

Addresses are chosen before anybody starts, because voters must know each other; and remembered,
because clients know them. They lie below the ports that the system gives to outgoing connections,
so that nobody takes them while the cluster is stopped.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from barnabas.cli.failure import CommandError

HOST = "127.0.0.1"
MEMORY = "cluster.json"
VOTERS = 3
FREE_PORTS = range(20_000, 32_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBroker:
    """One broker: its number, and where it listens for clients and for other brokers."""

    node_id: int
    listen: str
    peer_listen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCluster:
    """The brokers of a folder."""

    folder: Path
    brokers: tuple[LocalBroker, ...]
    voters: tuple[int, ...]
    """Those that vote on metadata, as far as it was arranged from here."""
    replication_factor: int | None = None
    min_in_sync: int | None = None
    """What brokers are told of copies; None leaves it to their configuration."""

    @property
    def bootstrap(self) -> str:
        """The addresses that clients begin with."""
        return ",".join(each.listen for each in self.brokers)

    def broker(self, node_id: int) -> LocalBroker:
        """Return a broker by its number."""
        for each in self.brokers:
            if each.node_id == node_id:
                return each
        there = ", ".join(str(each.node_id) for each in self.brokers)
        raise CommandError(f"{self.folder} has no broker {node_id}; it has {there}")

    def with_broker(self, broker: LocalBroker) -> "LocalCluster":
        """Return the cluster with one broker more."""
        return replace(self, brokers=(*self.brokers, broker))

    def without(self, node_id: int) -> "LocalCluster":
        """Return the cluster with one broker less."""
        left = tuple(each for each in self.brokers if each.node_id != node_id)
        return replace(self, brokers=left).without_voter(node_id)

    def with_voter(self, node_id: int) -> "LocalCluster":
        """Return the cluster with one voter more."""
        return replace(self, voters=(*self.voters, node_id))

    def without_voter(self, node_id: int) -> "LocalCluster":
        """Return the cluster with one voter less."""
        return replace(self, voters=tuple(each for each in self.voters if each != node_id))

    def arguments(self, broker: LocalBroker, config: Path | None) -> list[str]:
        """Return the words after `barnabas serve` that start a broker."""
        peers = {each.node_id: each.peer_listen for each in self.brokers}
        words = ["--node-id", str(broker.node_id), "--listen", broker.listen]
        words += ["--peer-listen", broker.peer_listen]
        words += ["--voters", ",".join(f"{each}@{peers[each]}" for each in self.voters)]
        words += ["--data", str(self.data(broker.node_id)), "--json"]
        if broker.node_id not in self.voters:
            words += ["--roles", "broker"]
        return words if config is None else [*words, "--config", str(config)]

    def settings(self) -> dict[str, str]:
        """Return the environment of a broker, besides what it inherits."""
        values = {
            "BARNABAS_REPLICATION_DEFAULT_REPLICATION_FACTOR": self.replication_factor,
            "BARNABAS_REPLICATION_MIN_INSYNC_REPLICAS": self.min_in_sync,
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    def data(self, node_id: int) -> Path:
        """The folder of a broker."""
        return self.folder / str(node_id)

    def log(self, node_id: int) -> Path:
        """The file with what a broker said."""
        return self.folder / f"{node_id}.log"

    def pid(self, node_id: int) -> Path:
        """The file with the process of a broker."""
        return self.folder / f"{node_id}.pid"

    def running_pid(self, node_id: int) -> int | None:
        """Return the process that runs a broker; None where none does."""
        if not is_locked(self.data(node_id)):
            return None
        try:
            return int(self.pid(node_id).read_text())
        except (OSError, ValueError):
            return None

    def save(self) -> None:
        """Remember it; a reader sees the old or the new, never half of it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        values = {
            "brokers": [asdict(each) for each in self.brokers],
            "voters": self.voters,
            "replication_factor": self.replication_factor,
            "min_in_sync": self.min_in_sync,
        }
        unfinished = self.folder / f"{MEMORY}.tmp"
        unfinished.write_text(json.dumps(values, indent=2) + "\n")
        unfinished.replace(self.folder / MEMORY)


def load(folder: Path) -> LocalCluster | None:
    """Return what a folder remembers; None where it holds no cluster."""
    try:
        values = json.loads((folder / MEMORY).read_text())
        return LocalCluster(
            folder=folder,
            brokers=tuple(LocalBroker(**each) for each in values["brokers"]),
            voters=tuple(values["voters"]),
            replication_factor=values["replication_factor"],
            min_in_sync=values["min_in_sync"],
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(
            f"{folder / MEMORY} cannot be read ({error}); it names the ports and voters of the "
            "cluster: put it back from a copy, or start another cluster in another folder"
        ) from error


def new_cluster(folder: Path, count: int, first_port: int | None) -> LocalCluster:
    """Choose numbers and addresses for a cluster that is not there yet."""
    listen = (
        free_ports(count) if first_port is None else list(range(first_port, first_port + count))
    )
    peers = free_ports(count, taken=listen)
    brokers = tuple(
        LocalBroker(node_id=1 + rank, listen=f"{HOST}:{port}", peer_listen=f"{HOST}:{peer}")
        for rank, (port, peer) in enumerate(zip(listen, peers, strict=True))
    )
    # Two voters stand no failure that one does not stand as well.
    voting = VOTERS if count >= VOTERS else 1
    return LocalCluster(
        folder=folder, brokers=brokers, voters=tuple(each.node_id for each in brokers[:voting])
    )


def joining(cluster: LocalCluster, node_id: int | None, port: int | None) -> LocalBroker:
    """Choose number and addresses for one broker more."""
    taken = {each.node_id for each in cluster.brokers}
    number = max(taken) + 1 if node_id is None else node_id
    if number in taken:
        raise CommandError(
            f"{cluster.folder} has a broker {number} already; leave out --id, "
            "or start all of them again with `barnabas cluster up`"
        )
    known = [int(a.rpartition(":")[2]) for b in cluster.brokers for a in (b.listen, b.peer_listen)]
    listen, peer = free_ports(2, taken=known)
    return LocalBroker(
        node_id=number, listen=f"{HOST}:{port or listen}", peer_listen=f"{HOST}:{peer}"
    )


def free_ports(count: int, taken: Iterable[int] = ()) -> list[int]:
    """Return ports that nobody listens on now."""
    avoided = set(taken)
    found: list[int] = []
    for port in _from_somewhere():
        if len(found) == count:
            break
        if port not in avoided and _is_free(port):
            found.append(port)
    return found


def is_locked(data: Path) -> bool:
    """Tell whether a broker runs on a folder: it holds a lock for as long as it does."""
    try:
        with (data / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _from_somewhere() -> Iterator[int]:
    """Yield all ports that may be used, two processes beginning at different ones."""
    start = os.getpid() * 31 % len(FREE_PORTS)
    yield from FREE_PORTS[start:]
    yield from FREE_PORTS[:start]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
