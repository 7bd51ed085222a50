"""A separate process for work on each record: a job on stdin, its outcome on stdout.

{"clean": plan}      compaction: groups of segments to swap in
{"verify": files}    scrubbing: path and byte of the first damage in each file that has any
"""

import contextlib
import ctypes
import json
import os
import signal
import sys

from barnabas.server.files.disk import OsDisk
from barnabas.storage.compacting.compaction import CleaningPlan, clean
from barnabas.storage.walk import first_damage

NICENESS = 10
PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have the kernel end this process with the broker: the next broker may clean the same log."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if sys.argv[1:] and os.getppid() != int(sys.argv[1]):
        sys.exit("the broker is gone")


def main() -> None:
    """Carry out one job at low priority, and end with the broker."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    end_with_parent()
    job = json.load(sys.stdin)
    if "clean" in job:
        json.dump(clean(OsDisk(), CleaningPlan(**job["clean"])), sys.stdout)
    else:
        disk = OsDisk()
        checked = ((path, first_damage(disk, path, size)) for path, size in job["verify"])
        json.dump([found for found in checked if found[1] is not None], sys.stdout)


if __name__ == "__main__":
    main()
