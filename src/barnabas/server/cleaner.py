"""Compaction in a process of its own: a plan on standard input, the outcome on standard output."""

import contextlib
import json
import os
import sys

from barnabas.server.disk import OsDisk
from barnabas.storage.compaction import CleaningPlan, clean

NICENESS = 10


def main() -> None:
    """Carry out one plan, politely."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    plan = CleaningPlan(**json.load(sys.stdin))
    json.dump(clean(OsDisk(), plan), sys.stdout)


if __name__ == "__main__":
    main()
