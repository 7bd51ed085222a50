"""Tests unknown names in a log's folder: the log stays readable, and the files stay."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.server.files.disk import OsDisk
from barnabas.storage.log import LogSettings
from barnabas.storage.recovery import Recovered, open_log
from tests.support.examples import examples
from tests.support.talk.batches import append, make_batch, read_all

SMALL = LogSettings(segment_bytes=300, index_interval_bytes=100)
COUNT = 8
ZERO = f"{0:020d}"
OTHER_DIGITS = ("\N{ARABIC-INDIC DIGIT ZERO}" * 20, "\N{SUPERSCRIPT TWO}" * 20, "\u0660" + ZERO[1:])
STEMS = ("backup", "x", "", "0", "readme", f"{ZERO}0", f"-{ZERO[1:]}", "9" * 20, *OTHER_DIGITS)
SUFFIXES = (
    ".log",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    ".swap",
    ".log.swap",
    ".tmp",
    ".deleted",
    ".log.deleted",
    ".checkpoint",
    f".log.{ZERO}.swap",
)
OF_KAFKA = (
    f"{ZERO}.log.swap",
    f"{ZERO}.log.deleted",
    f"{ZERO}.log.cleaned",
    f"{ZERO}.timeindex.swap",
    "partition.metadata",
    ".lock",
)
LIKE_OURS = (
    f"{99:020d}.log",
    f"{ZERO}.log.5.deleted",
    f"{ZERO}.log.{7:020d}.swap",
    f"{99:020d}.snapshot",
    "leader-epoch-checkpoint.tmp",
    f"{ZERO}.log.5.damaged.tmp",
)
"""Names that a file of the log may have, but a folder may not."""

texts = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=20)
strange = st.one_of(
    st.builds(
        lambda stem, suffix: stem + suffix, st.sampled_from(STEMS), st.sampled_from(SUFFIXES)
    ),
    st.sampled_from(OF_KAFKA),
    texts.map(lambda text: f"{text}~"),
)
folders = st.one_of(strange, st.sampled_from(LIKE_OURS))


def opened(folder: Path, *, clean: bool) -> Recovered:
    return open_log(OsDisk(), str(folder), SMALL, clean=clean, recovery_point=COUNT if clean else 0)


def check(folder: Path, files: set[str], folders: set[str], *, clean: bool) -> None:
    log = opened(folder, clean=False).log
    for number in range(COUNT):
        append(log, make_batch([(b"k", b"%d" % number * 30)]))
    log.flush()
    log.close()
    before = [bytes(batch) for _, batch in read_all(log)]
    for name in files:
        (folder / name).write_text("not the log's")
    for name in folders:
        (folder / name).mkdir()
        (folder / name / "inside").write_text("nor this")
    found = opened(folder, clean=clean)
    assert [bytes(batch) for _, batch in read_all(found.log)] == before
    assert set(found.ignored) == files | folders
    append(found.log)
    found.log.roll()
    found.log.close()
    assert all((folder / name).read_text() == "not the log's" for name in files)
    assert all((folder / name / "inside").read_text() == "nor this" for name in folders)


@given(
    files=st.sets(strange, max_size=4), folders=st.sets(folders, max_size=3), clean=st.booleans()
)
@settings(max_examples=examples(40), deadline=None)
def test_strange_names_are_ignored_and_left_alone(
    files: set[str], folders: set[str], *, clean: bool
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        check(Path(temporary) / "log", files - {".", ".."}, folders - files, clean=clean)


@pytest.mark.parametrize("clean", [False, True])
def test_every_name_that_was_ever_taken_for_the_logs_own(tmp_path: Path, *, clean: bool) -> None:
    files = {stem + suffix for stem in STEMS for suffix in SUFFIXES if stem + suffix}
    check(tmp_path / "log", files | set(OF_KAFKA), {"x.folder", *LIKE_OURS}, clean=clean)
