"""Lines of the audit log on their way to the file."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.server.files import audit_file
from barnabas.server.files.audit_file import AuditFile


class Background:
    """Keeps chores until a test runs them."""

    def __init__(self) -> None:
        self.chores: list[Callable[[], None]] = []

    def __call__(self, chore: Callable[[], None]) -> None:
        self.chores.append(chore)

    def run(self) -> None:
        chores, self.chores = self.chores, []
        for chore in chores:
            chore()


@pytest.fixture
def background() -> Background:
    return Background()


def test_lines_are_appended_in_order_by_one_chore(tmp_path: Path, background: Background) -> None:
    path = tmp_path / "audit.log"
    file = AuditFile(str(path), background)
    for line in ("one", "two"):
        file.add(line)
    assert len(background.chores) == 1
    assert not path.exists(), "the event loop wrote it"
    background.run()
    file.add("three")
    background.run()
    assert path.read_text() == "one\ntwo\nthree\n"
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_that_was_renamed_is_made_anew(tmp_path: Path, background: Background) -> None:
    path = tmp_path / "audit.log"
    file = AuditFile(str(path), background)
    file.add("one")
    background.run()
    path.rename(tmp_path / "audit.log.1")
    file.add("two")
    background.run()
    assert path.read_text() == "two\n"


def test_lines_beyond_the_limit_are_counted(
    tmp_path: Path, background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_file, "LINES_MAX", 2)
    path = tmp_path / "audit.log"
    file = AuditFile(str(path), background)
    for line in ("one", "two", "three", "four"):
        file.add(line)
    background.run()
    *written, last = path.read_text().splitlines()
    assert written == ["one", "two"]
    assert json.loads(last) == {"dropped": 2}


def test_a_disk_that_refuses_stops_nothing(tmp_path: Path, background: Background) -> None:
    folder = tmp_path / "absent"
    file = AuditFile(str(folder / "audit.log"), background)
    file.add("lost")
    background.run()
    folder.mkdir()
    file.add("kept")
    background.run()
    kept, counted = (folder / "audit.log").read_text().splitlines()
    assert kept == "kept"
    assert json.loads(counted) == {"dropped": 1}
