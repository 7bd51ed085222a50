"""Tests carrying out effects: long work does not delay anything else."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.app import new_event_loop
from barnabas.effects import Clean, Effect, Remove, Verify
from barnabas.server.effect_runner import EffectDriver
from barnabas.server.server import Server
from barnabas.storage.compacting.compaction import CleaningPlan
from tests.support.talk.peer_pair import edge

PATIENCE_S = 30


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    loop = new_event_loop()
    server = edge(tmp_path / "data", loop)
    yield server
    server.driver.close()
    loop.close()


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Make every job in a separate process last until this is set."""
    released = threading.Event()

    def run(*_: object) -> None:
        released.wait()

    monkeypatch.setattr(EffectDriver, "_run_apart", run)
    yield released
    released.set()


def a_clean(folder: Path) -> Clean:
    plan = CleaningPlan(
        folder=str(folder),
        bases=[],
        first_dirty=0,
        end=0,
        now_ms=0,
        delete_retention_ms=0,
        segment_bytes=1,
        index_interval_bytes=1,
        room_bytes=0,
        truncations=0,
        aborted=[],
    )
    return Clean(plan, lambda _: None)


def turn_until(server: Server, event: threading.Event) -> None:
    """Run the event loop until a thread has set an event."""
    waited = server.loop.run_in_executor(None, event.wait, PATIENCE_S)
    assert server.loop.run_until_complete(waited)


@pytest.mark.parametrize("busy", ["scrubbing", "compaction", "both"])
def test_removals_and_checkpoints_do_not_wait_for_long_chores(
    server: Server,
    release: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    busy: str,
) -> None:
    removed, remove = threading.Event(), EffectDriver._remove

    def noted(driver: EffectDriver, effect: Remove) -> None:
        remove(driver, effect)
        removed.set()

    monkeypatch.setattr(EffectDriver, "_remove", noted)
    verify, cleaning = Verify((), lambda _: None), a_clean(tmp_path)
    chores: dict[str, list[Effect]] = {
        "scrubbing": [verify, verify],
        "compaction": [cleaning, cleaning],
        "both": [verify, cleaning],
    }
    server.driver.carry_out(chores[busy])
    retired = tmp_path / "0.log.deleted"
    retired.touch()
    server.driver.carry_out([Remove((str(retired),), 0)])
    turn_until(server, removed)
    assert not retired.exists()
    checkpointed = threading.Event()
    server.driver.in_background(checkpointed.set)
    assert checkpointed.wait(PATIENCE_S)
    assert not release.is_set()


def test_compaction_and_scrubbing_do_not_wait_for_each_other(
    server: Server,
    release: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Test two scrubs, which a restart with `verify_on_start` may start, and a compaction beside
    them.
    """
    cleaned = threading.Event()

    def run(_: EffectDriver, job: dict[str, object], *__: object) -> None:
        if "clean" in job:
            cleaned.set()
        else:
            release.wait()

    monkeypatch.setattr(EffectDriver, "_run_apart", run)
    verify = Verify((), lambda _: None)
    server.driver.carry_out([verify, verify, a_clean(tmp_path)])
    assert cleaned.wait(PATIENCE_S)


def test_the_output_of_a_compaction_that_was_killed_is_removed(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The kernel may kill it, for example, if memory runs out."""
    monkeypatch.setattr(EffectDriver, "_run_apart", lambda *_: None)
    output = tmp_path / "cleaning"
    output.mkdir()
    (output / "0.log").write_bytes(bytes(1000))
    heard = server.loop.create_future()
    server.driver.carry_out([Clean(a_clean(tmp_path).plan, heard.set_result)])
    assert server.loop.run_until_complete(asyncio.wait_for(heard, PATIENCE_S)) is None
    assert not output.exists()
