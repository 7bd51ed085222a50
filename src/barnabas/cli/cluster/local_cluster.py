"""The brokers and addresses of a local cluster, stored in its directory.

    DIR/cluster.json     the brokers, addresses and voters
    DIR/1, DIR/2, ...    the data of each broker
    DIR/1.log, ...       the log of each broker
    DIR/1.pid, ...       the current or last process of each broker
    DIR/security/        certificates and passwords (`cluster up --secure`)

Addresses are chosen before the first start, because voters must know each other, and stored,
because clients know them. The ports are below the range for outgoing connections, so that no other
process takes them while the cluster is stopped.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from barnabas.cli.common.failure import CommandError

HOST = "127.0.0.1"
MEMORY = "cluster.json"
VOTERS = 3
FREE_PORTS = range(20_000, 32_000)
LISTENER = "SECURE"
"""The name of the only listener for clients of a cluster with security."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBroker:
    """One broker: its node id, and its addresses for clients and for other brokers."""

    node_id: int
    listen: str
    peer_listen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCluster:
    """The brokers of a directory."""

    folder: Path
    brokers: tuple[LocalBroker, ...]
    voters: tuple[int, ...]
    """The voters, as far as these commands changed them."""
    replication_factor: int | None = None
    min_in_sync: int | None = None
    """The default replication factor and min ISR; None: as configured."""
    is_secure: bool = False
    """Whether it has TLS, passwords and ACLs."""

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers."""
        return ",".join(each.listen for each in self.brokers)

    def broker(self, node_id: int) -> LocalBroker:
        """Return a broker by its node id."""
        for each in self.brokers:
            if each.node_id == node_id:
                return each
        there = ", ".join(str(each.node_id) for each in self.brokers)
        raise CommandError(f"{self.folder} has no broker {node_id}; it has {there}")

    def with_broker(self, broker: LocalBroker) -> "LocalCluster":
        """Return the cluster with another broker."""
        return replace(self, brokers=(*self.brokers, broker))

    def without(self, node_id: int) -> "LocalCluster":
        """Return the cluster without a broker."""
        left = tuple(each for each in self.brokers if each.node_id != node_id)
        return replace(self, brokers=left).without_voter(node_id)

    def with_voter(self, node_id: int) -> "LocalCluster":
        """Return the cluster with another voter."""
        return replace(self, voters=(*self.voters, node_id))

    def without_voter(self, node_id: int) -> "LocalCluster":
        """Return the cluster without a voter."""
        return replace(self, voters=tuple(each for each in self.voters if each != node_id))

    def arguments(self, broker: LocalBroker, config: Path | None) -> list[str]:
        """Return the arguments of `barnabas serve` for a broker."""
        peers = {each.node_id: each.peer_listen for each in self.brokers}
        listen = f"{LISTENER}={broker.listen}" if self.is_secure else broker.listen
        words = ["--node-id", str(broker.node_id), "--listen", listen]
        words += ["--peer-listen", broker.peer_listen]
        words += ["--voters", ",".join(f"{each}@{peers[each]}" for each in self.voters)]
        words += ["--data", str(self.data(broker.node_id)), "--json"]
        if broker.node_id not in self.voters:
            words += ["--roles", "broker"]
        if self.is_secure:
            words += ["--config", str(self.settings_file(broker.node_id))]
            words += ["--bootstrap-admin", "admin"]
            return [*words, "--bootstrap-admin-password-file", str(self.password_file)]
        return words if config is None else [*words, "--config", str(config)]

    def settings(self) -> dict[str, str]:
        """Return the additional environment variables of a broker."""
        values = {
            "BARNABAS_REPLICATION_DEFAULT_REPLICATION_FACTOR": self.replication_factor,
            "BARNABAS_REPLICATION_MIN_INSYNC_REPLICAS": self.min_in_sync,
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    @property
    def properties(self) -> list[str] | None:
        """What a command needs to connect, as KEY=VALUE; None without security."""
        return self.client_file.read_text().splitlines() if self.is_secure else None

    @property
    def security_folder(self) -> Path:
        """The directory of certificates and passwords."""
        return self.folder / "security"

    @property
    def password_file(self) -> Path:
        """The file with the password of the first admin."""
        return self.security_folder / "admin.password"

    @property
    def client_file(self) -> Path:
        """The file with the properties of librdkafka's clients."""
        return self.security_folder / "client.properties"

    @property
    def java_file(self) -> Path:
        """The file with the properties of Java's clients."""
        return self.security_folder / "java.properties"

    def settings_file(self, node_id: int) -> Path:
        """The settings file of a broker with security."""
        return self.security_folder / f"broker-{node_id}.yaml"

    def data(self, node_id: int) -> Path:
        """The data directory of a broker."""
        return self.folder / str(node_id)

    def log(self, node_id: int) -> Path:
        """The log file of a broker."""
        return self.folder / f"{node_id}.log"

    def pid(self, node_id: int) -> Path:
        """The file with the process id of a broker."""
        return self.folder / f"{node_id}.pid"

    def running_pid(self, node_id: int) -> int | None:
        """Return the process id of a running broker, or None."""
        if not is_locked(self.data(node_id)):
            return None
        try:
            return int(self.pid(node_id).read_text())
        except (OSError, ValueError):
            return None

    def save(self) -> None:
        """Store it; a reader sees the old or the new file, never a part of it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        values = {
            "brokers": [asdict(each) for each in self.brokers],
            "voters": self.voters,
            "replication_factor": self.replication_factor,
            "min_in_sync": self.min_in_sync,
            "is_secure": self.is_secure,
        }
        unfinished = self.folder / f"{MEMORY}.tmp"
        unfinished.write_text(json.dumps(values, indent=2) + "\n")
        unfinished.replace(self.folder / MEMORY)


def load(folder: Path) -> LocalCluster | None:
    """Return the cluster of a directory; None if there is none."""
    try:
        values = json.loads((folder / MEMORY).read_text())
        return LocalCluster(
            folder=folder,
            brokers=tuple(LocalBroker(**each) for each in values["brokers"]),
            voters=tuple(values["voters"]),
            replication_factor=values["replication_factor"],
            min_in_sync=values["min_in_sync"],
            is_secure=values.get("is_secure", False),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(
            f"{folder / MEMORY} cannot be read ({error}); it has the ports and voters of the "
            "cluster: restore it from a backup, or start a new cluster in another directory"
        ) from error


def new_cluster(folder: Path, count: int, first_port: int | None) -> LocalCluster:
    """Choose node ids and addresses for a new cluster."""
    listen = (
        free_ports(count) if first_port is None else list(range(first_port, first_port + count))
    )
    peers = free_ports(count, taken=listen)
    brokers = tuple(
        LocalBroker(node_id=1 + rank, listen=f"{HOST}:{port}", peer_listen=f"{HOST}:{peer}")
        for rank, (port, peer) in enumerate(zip(listen, peers, strict=True))
    )
    # Two voters survive no more failures than one.
    voting = VOTERS if count >= VOTERS else 1
    return LocalCluster(
        folder=folder, brokers=brokers, voters=tuple(each.node_id for each in brokers[:voting])
    )


def joining(cluster: LocalCluster, node_id: int | None, port: int | None) -> LocalBroker:
    """Choose node id and addresses for another broker."""
    taken = {each.node_id for each in cluster.brokers}
    number = max(taken) + 1 if node_id is None else node_id
    if number in taken:
        raise CommandError(
            f"{cluster.folder} already has a broker {number}; omit --id, "
            "or start all brokers again with `barnabas cluster up`"
        )
    known = [int(a.rpartition(":")[2]) for b in cluster.brokers for a in (b.listen, b.peer_listen)]
    listen, peer = free_ports(2, taken=known)
    return LocalBroker(
        node_id=number, listen=f"{HOST}:{port or listen}", peer_listen=f"{HOST}:{peer}"
    )


def free_ports(count: int, taken: Iterable[int] = ()) -> list[int]:
    """Return ports on which no process listens."""
    avoided = set(taken)
    found: list[int] = []
    for port in _from_somewhere():
        if len(found) == count:
            break
        if port not in avoided and is_free(port):
            found.append(port)
    return found


def is_locked(data: Path) -> bool:
    """Return whether a broker uses a directory: it holds a lock while it runs."""
    try:
        with (data / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _from_somewhere() -> Iterator[int]:
    """Yield all usable ports, starting at a different one in each process."""
    start = os.getpid() * 31 % len(FREE_PORTS)
    yield from FREE_PORTS[start:]
    yield from FREE_PORTS[:start]


def is_free(port: int) -> bool:
    """Return whether no process listens on a port."""
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
