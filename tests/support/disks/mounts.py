"""Mounts small file systems and file systems that lose power; needs Linux and root.

Where they cannot be made, `CannotMountError` says why, for a test to be skipped with that reason.
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
"""What is not on the device is gone: the journal, too, is not written out."""


class CannotMountError(Exception):
    """This machine does not let us mount."""


@contextlib.contextmanager
def small_disk(folder: Path, size_bytes: int, options: str = "rw") -> Iterator[Path]:
    """Mount a file system in memory that is full after so many bytes."""
    _needs("mount", "umount")
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"{options},size={size_bytes}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        _run("umount", "-l", str(folder))


class PowerCutDisk:
    """An ext4 file system on a file, whose power can be cut."""

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
        """Bring it up, which replays its journal."""
        _run("mount", "-o", "loop", str(self._image), str(self.folder))

    def cut_power(self) -> None:
        """From now on nothing reaches the device, and what did not is lost."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            how = ctypes.c_uint32(WITHOUT_FLUSH)
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.ioctl(descriptor, ctypes.c_ulong(EXT4_IOC_SHUTDOWN), ctypes.byref(how)):
                raise CannotMountError(f"no power cut: {os.strerror(ctypes.get_errno())}")
        finally:
            os.close(descriptor)

    def unmount(self) -> None:
        """Take it down, as it is."""
        _run("umount", str(self.folder))

    def close(self) -> None:
        """Leave nothing mounted."""
        with contextlib.suppress(CannotMountError):
            _run("umount", "-l", str(self.folder))


def _needs(*commands: str) -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise CannotMountError("only root on Linux can mount")
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        raise CannotMountError(f"there is no {missing[0]} here")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotMountError(f"{command[0]}: {done.stderr.strip()}")
