"""Sets up the breakable environment of a cluster: a network, disks, and a library before libc.

It leaves out what this machine does not allow, and `missing` says why. Faults that need it are then
not drawn.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from barnabas.testing.places import Loopback, Place
from tests.support.clusters.cluster_places import Network, NoNetworkError
from tests.support.clusters.cluster_shim import Control, NoCompilerError, compiled_shim
from tests.support.disks.mounts import CannotMountError, PowerCutDisk

NETWORK = "network"
DISKS = "disks"
SHIM = "shim"
SECURITY = "security"
DISK_BYTES = 4 << 30
"""Sparse files: unwritten parts take no space."""
BLOCK = 1 << 20


class Ground:
    """The environment for the nodes of one cluster."""

    def __init__(self, folder: Path, nodes: Sequence[int], disk_bytes: int = DISK_BYTES) -> None:
        self.missing: dict[str, str] = {}
        self.network: Network | None = None
        self.disks: dict[int, PowerCutDisk] = {}
        self.controls: dict[int, Control] = {}
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self.network = Network(nodes)
        except NoNetworkError as error:
            self.missing[NETWORK] = str(error)
        try:
            for node in nodes:
                image, mounted = folder / f"disk-{node}.image", folder / f"disk-{node}"
                self.disks[node] = PowerCutDisk(image, mounted, disk_bytes)
        except CannotMountError as error:
            self.missing[DISKS] = str(error)
            self._close_disks()
        try:
            library = compiled_shim(folder)
        except NoCompilerError as error:
            self.missing[SHIM] = str(error)
        else:
            self.controls = {n: Control(folder / f"control-{n}", library) for n in nodes}
        self._folder = folder

    @property
    def place(self) -> Place:
        """Return where the nodes run: in the network, if there is one."""
        return self.network or Loopback()

    def data(self, node: int) -> Path:
        """Return the folder of a node, on its own disk if it has one."""
        disk = self.disks.get(node)
        return (disk.folder if disk else self._folder) / f"node-{node}"

    def fill_disk(self, node: int) -> None:
        """Fill the disk of a node."""
        with self._filler(node).open("ab", buffering=0) as file:
            size = file.tell()
            block = BLOCK
            while block >= 4096:
                try:
                    os.posix_fallocate(file.fileno(), size, block)
                except OSError:
                    block //= 2
                else:
                    size += block
                    block = min(block * 2, BLOCK * 64)

    def empty_disk(self, node: int) -> None:
        """Free the space again."""
        self._filler(node).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove everything."""
        self._close_disks()
        if self.network:
            self.network.close()

    def __enter__(self) -> "Ground":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _filler(self, node: int) -> Path:
        return self.disks[node].folder / "filler"

    def _close_disks(self) -> None:
        for disk in self.disks.values():
            disk.close()
        self.disks.clear()
