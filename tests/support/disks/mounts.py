"""Mounts small file systems and file systems that lose power; needs Linux and root.

If that is not possible, `CannotMountError` has the reason, with which tests are skipped.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

EXT4_IOC_SHUTDOWN = 0x8004587D
"""_IOR('X', 125, __u32), the same for ext4 and XFS."""
WITHOUT_FLUSH = 2
"""Lose everything that is not on the device; the journal is not written either."""


class CannotMountError(Exception):
    """This machine does not allow mounts."""


@contextlib.contextmanager
def small_disk(folder: Path, size_bytes: int, options: str = "rw") -> Iterator[Path]:
    """Mount a file system in memory with the given size."""
    _needs("mount", "umount")
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"{options},size={size_bytes}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        _run("umount", "-l", str(folder))


class PowerCutDisk:
    """An ext4 file system in a file that can lose power."""

    def __init__(self, image: Path, folder: Path, size_bytes: int = 64 << 20) -> None:
        _needs("mkfs.ext4", "mount", "umount")
        self._image = image
        self.folder = folder
        with image.open("wb") as file:
            file.truncate(size_bytes)
        folder.mkdir(parents=True, exist_ok=True)
        _run("mkfs.ext4", "-q", "-F", str(image))
        self.mount()

    def mount(self) -> None:
        """Mount it, which replays its journal."""
        _run("mount", "-o", "loop", str(self._image), str(self.folder))

    def cut_power(self) -> None:
        """Stop all writes to the device from now on; data that is not on it is lost."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            how = ctypes.c_uint32(WITHOUT_FLUSH)
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.ioctl(descriptor, ctypes.c_ulong(EXT4_IOC_SHUTDOWN), ctypes.byref(how)):
                raise CannotMountError(f"cannot cut the power: {os.strerror(ctypes.get_errno())}")
        finally:
            os.close(descriptor)

    def unmount(self) -> None:
        """Unmount it without further writes."""
        _run("umount", str(self.folder))

    def close(self) -> None:
        """Unmount everything."""
        with contextlib.suppress(CannotMountError):
            _run("umount", "-l", str(self.folder))


def _needs(*commands: str) -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise CannotMountError("only root on Linux can mount")
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        raise CannotMountError(f"{missing[0]} is not installed")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotMountError(f"{command[0]}: {done.stderr.strip()}")
