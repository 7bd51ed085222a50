"""Work per record in a process of its own: a job on standard input, its outcome on standard output.

{"clean": plan}      compaction: groups of segments to swap in
{"verify": paths}    scrubbing: path and byte of the first damage in each file that has any
"""

import contextlib
import json
import os
import sys

from barnabas.model.errors import CorruptBatchError
from barnabas.server.disk import OsDisk
from barnabas.storage.compaction import CleaningPlan, clean
from barnabas.storage.walk import walk

NICENESS = 10


def verify(path: str) -> int | None:
    """Return where a file is first damaged; None where it is whole, or gone by now."""
    end = 0
    try:
        file = OsDisk().open(path)
        for position, header in walk(file, 0, file.size(), check=True):
            end = position + header.size
    except CorruptBatchError:
        return end
    except FileNotFoundError:
        return None
    return None


def main() -> None:
    """Carry out one job, politely."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    job = json.load(sys.stdin)
    if "clean" in job:
        json.dump(clean(OsDisk(), CleaningPlan(**job["clean"])), sys.stdout)
    else:
        checked = ((path, verify(path)) for path in job["verify"])
        json.dump([found for found in checked if found[1] is not None], sys.stdout)


if __name__ == "__main__":
    main()
