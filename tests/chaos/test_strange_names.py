"""Tests unknown files and folders among the broker's: it starts and serves."""

from pathlib import Path

import pytest

from barnabas.testing.process import BrokerSubprocess
from tests.support.disks.ledger import value_of
from tests.support.loads.load import consume_all, create_topic, produce_one

pytestmark = pytest.mark.chaos

TOPIC = "kept"
IGNORED = "ignored files that are not the broker's"
FILES = (
    "backup.swap",
    f"{0:020d}.log.swap",
    "\N{ARABIC-INDIC DIGIT ZERO}" * 20 + ".log",
    "notes.checkpoint",
    "old.tmp",
)
FOLDERS = ("x.tmp", "x.deleted", f"{5:020d}.log")


@pytest.mark.parametrize("clean", [False, True])
def test_strange_names_do_not_stop_the_broker(tmp_path: Path, *, clean: bool) -> None:
    with BrokerSubprocess(tmp_path / "data") as broker:
        create_topic(broker.bootstrap, TOPIC, 1)
        assert produce_one(broker.bootstrap, TOPIC, value_of("p", 0)) == 0
        if clean:
            assert broker.terminate() == 0
        else:
            broker.kill()
        folders = [broker.data / "topics" / TOPIC / "0", broker.data / "__cluster_metadata"]
        for folder in [*folders, broker.data / "topics", broker.data / "deleted"]:
            fill(folder)
        broker.start()
        assert produce_one(broker.bootstrap, TOPIC, value_of("p", 1)) == 1
        assert [found.number for found in consume_all(broker.bootstrap, TOPIC, 1)[0]] == [0, 1]
        for folder in folders:
            (line,) = [each for each in broker.log_lines(IGNORED) if each["folder"] == str(folder)]
            assert line["count"] == len(FILES) + len(FOLDERS)
            assert set(line["names"]) == {*FILES, *FOLDERS}
        assert broker.terminate() == 0
        for folder in [*folders, broker.data / "topics", broker.data / "deleted"]:
            assert all((folder / name).read_text() == "mine" for name in FILES)
            assert all((folder / name / "inside").read_text() == "mine" for name in FOLDERS)


def fill(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in FILES:
        (folder / name).write_text("mine")
    for name in FOLDERS:
        (folder / name).mkdir()
        (folder / name / "inside").write_text("mine")


def test_a_stray_file_does_not_stop_the_first_start(tmp_path: Path) -> None:
    (tmp_path / "data" / "topics").mkdir(parents=True)
    (tmp_path / "data" / "topics" / ".DS_Store").write_text("mine")
    with BrokerSubprocess(tmp_path / "data") as broker:
        create_topic(broker.bootstrap, TOPIC, 1)
        assert produce_one(broker.bootstrap, TOPIC, value_of("p", 0)) == 0
