"""Builds a library that is loaded before libc: syncs fail or take long, the wall clock jumps.

Each process has a control file of a few bytes, mapped into its memory. So a fault begins and ends
at once, and costs nothing while it is off.
"""

import shutil
import struct
import subprocess
from pathlib import Path

CONTROL = struct.Struct("=qiii")
"""The nanoseconds added to the wall clock; whether syncs fail; how many failed; the delay of a sync
in microseconds.
"""
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int64_t ahead_ns;
    volatile int32_t failing, failed, delay_us;
};
static struct control nothing, *control = &nothing;
static int (*real_sync)(int), (*real_datasync)(int), (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real_sync = dlsym(RTLD_NEXT, "fsync");
    real_datasync = dlsym(RTLD_NEXT, "fdatasync");
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("CLUSTER_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *mapped = mmap(0, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) control = mapped;
    close(fd);
}
static int fails(void) {
    if (!control->failing) return 0;
    __sync_fetch_and_add(&control->failed, 1);
    errno = EIO;
    return 1;
}
static int slowly(int (*call)(int), int fd) {
    if (fails()) return -1;
    if (control->delay_us) usleep(control->delay_us);
    return call(fd);
}
int fsync(int fd) { return slowly(real_sync, fd); }
int fdatasync(int fd) { return slowly(real_datasync, fd); }
int clock_gettime(clockid_t clock, struct timespec *found) {
    int answer = real_gettime(clock, found);
    if (answer || clock != CLOCK_REALTIME || !control->ahead_ns) return answer;
    int64_t now = found->tv_sec * 1000000000LL + found->tv_nsec + control->ahead_ns;
    found->tv_sec = now / 1000000000LL;
    found->tv_nsec = now % 1000000000LL;
    return 0;
}
"""


class NoCompilerError(Exception):
    """This machine has no C compiler."""


def compiled_shim(folder: Path) -> Path:
    """Compile the library into a folder, once."""
    library = folder / "shim.so"
    if not library.exists():
        compiler = shutil.which("cc")
        if compiler is None:
            raise NoCompilerError("no C compiler is installed")
        source = folder / "shim.c"
        source.write_text(SOURCE)
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
    return library


class Control:
    """Controls one process through its control file, in its current and later lives."""

    def __init__(self, path: Path, library: Path) -> None:
        self._path = path
        self._path.write_bytes(CONTROL.pack(0, 0, 0, 0))
        self.environment = {"LD_PRELOAD": str(library), "CLUSTER_CONTROL": str(path)}

    @property
    def failed_syncs(self) -> int:
        """How many syncs were refused so far."""
        failed: int = CONTROL.unpack(self._path.read_bytes())[2]
        return failed

    def fail_syncs(self, failing: bool) -> None:
        """Make every sync fail from now on, or stop that."""
        self._write(struct.pack("=i", failing), 8)

    def delay_syncs(self, delay_ms: int) -> None:
        """Delay every sync from now on."""
        self._write(struct.pack("=i", delay_ms * 1000), 16)

    def set_clock(self, ahead_ms: int) -> None:
        """Move the wall clock ahead or back; the monotonic clock is not affected."""
        self._write(struct.pack("=q", ahead_ms * 1_000_000), 0)

    def _write(self, content: bytes, position: int) -> None:
        with self._path.open("r+b") as file:
            file.seek(position)
            file.write(content)
