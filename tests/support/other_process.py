"""Runs Python code in another process with another hash seed, to show that a run is repeatable."""

import os
import subprocess
import sys

HASH_SEEDS = ("0", "1")


def printed_elsewhere(code: str) -> set[str]:
    """Return what the code prints in processes with different hash seeds."""
    return {_printed(code, seed) for seed in HASH_SEEDS}


def _printed(code: str, hash_seed: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": "src"},
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip()
