"""Lets a Python process find a package no more, as if its extra were not installed.

env = {**os.environ, "PYTHONPATH": str(hide(tmp_path / "modules", "uvicorn"))}
"""

from pathlib import Path

CODE = """\
import sys


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "{name}":
            raise ModuleNotFoundError("No module named '{name}'", name=name)


sys.meta_path.insert(0, Hidden())
"""


def hide(folder: Path, name: str) -> Path:
    """Return a folder for PYTHONPATH, with which Python does not find the package."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(CODE.format(name=name))
    return folder
