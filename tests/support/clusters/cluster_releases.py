"""Starts brokers of another release, from a wheel built from a commit of this repository.

    old = install_release("71dafa1", Path("build/releases"))
    run_release(cluster.nodes[1], old)      # from its next start on
    run_release(cluster.nodes[1], None)     # the current release again

The release brings its own package. Its dependencies come from the running environment.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from barnabas.testing.process import BrokerSubprocess

FIRST_RELEASE = "71dafa1"
"""The last commit at feature level 1."""
ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src"


def install_release(commit: str, folder: Path) -> Path:
    """Build the wheel of a commit and unpack it, unless that was done before."""
    target = folder.absolute() / commit
    if (target / "barnabas").is_dir():
        return target
    with tempfile.TemporaryDirectory() as temporary:
        sources, wheels = Path(temporary, "sources"), Path(temporary, "wheels")
        archived = _run(["git", "-C", str(ROOT), "archive", commit])
        with tarfile.open(fileobj=io.BytesIO(archived)) as archive:
            archive.extractall(sources, filter="data")
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(sources)])
        (wheel,) = wheels.glob("barnabas-*.whl")
        _run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)])
    return target


def run_release(broker: BrokerSubprocess, release: Path | None) -> None:
    """Start a broker with another release from its next start on; None is the current release."""
    broker.set_variable("PYTHONPATH", str(release or SOURCES))
    broker.set_variable("PYTHONSAFEPATH", "1")


def _run(command: list[str]) -> bytes:
    done = subprocess.run(
        command, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": ""}
    )
    if done.returncode:
        text = done.stderr.decode(errors="replace")
        raise AssertionError(f"{' '.join(command)} failed: {text}")
    return done.stdout
