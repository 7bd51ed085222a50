"""Tests jobs that fail, restart and are stopped, with queries that a test controls."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from barnabas.telemetry.jobs import pipeline_jobs, supervising
from barnabas.telemetry.jobs.pipeline_jobs import Job, JobSettings
from barnabas.telemetry.jobs.supervising import DEATHS_MAX, JobFailedError, Picture, Supervisor
from barnabas.telemetry.lake import lake

AWAY = "barnabas.wire.wire_failures.LinkError: No broker answered at a:1"
DIED = "SparkException: Python worker exited unexpectedly (crashed)"
BROKEN = "barnabas.spark.query_errors.DataLossError: t-0 lost 5 to 9"


@dataclass
class Query:
    """A streaming query that fails when the test says so."""

    error: str | None = None
    looks: int = 0
    """How many times it is found busy before its batch is over."""
    stopped: bool = False
    recentProgress: list[Any] = field(default_factory=list)  # noqa: N815 - Spark's name
    lastProgress: Any = None  # noqa: N815 - Spark's name

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return self.error is None and not self.stopped

    @property
    def status(self) -> dict[str, bool]:
        self.looks -= 1
        return {"isTriggerActive": self.looks >= 0}

    def exception(self) -> str | None:
        return self.error

    def stop(self) -> None:
        self.stopped = True


class Ends:
    answered = True

    def __init__(self, *_: object) -> None: ...

    def ask(self) -> dict[str, dict[str, int]]:
        return {}


class Scene:
    """Jobs whose queries come from lists, and a clock that jumps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, **lives: list[Query]) -> None:
        self.lives = lives
        self.launches: list[str] = []
        self.now_s = 0.0
        monkeypatch.setattr(pipeline_jobs, "prepare", lambda *_: lake.create(str(folder)))
        monkeypatch.setattr(pipeline_jobs, "launched", self._launched)
        monkeypatch.setattr(supervising, "TopicEnds", Ends)
        monkeypatch.setattr("barnabas.telemetry.jobs.supervising.time.sleep", self._sleep)
        chosen = [Job(name, 0, lambda *_: None) for name in lives]  # type: ignore[arg-type]
        settings = JobSettings(bootstrap="a:1", lake=str(folder))
        self.supervisor = Supervisor(
            None, settings, chosen, once=False, now_s=lambda: self.now_s  # type: ignore[arg-type]
        )  # fmt: skip

    def _launched(self, *arguments: Any) -> Query:
        name = arguments[3].name
        self.launches.append(name)
        return self.lives[name].pop(0)

    def _sleep(self, seconds: float) -> None:
        self.now_s += max(seconds, 0.01)

    def run(self, stop_when: Callable[[Picture], bool] = lambda _: False) -> list[Picture]:
        seen = []

        def show(picture: Picture) -> None:
            seen.append(picture)
            if stop_when(picture):
                self.supervisor.request_stop()

        self.supervisor.run(show, 0.1)
        return seen


def test_a_job_whose_broker_went_away_comes_back_later_and_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    well = Query()
    lives = [Query(error=AWAY) for _ in range(DEATHS_MAX + 3)]
    scene = Scene(monkeypatch, tmp_path, silver=[*lives, well])

    scene.run(lambda _: len(scene.launches) == len(lives) + 1)

    assert scene.now_s > 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60
    assert well.stopped


def test_a_job_whose_process_dies_again_and_again_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scene = Scene(monkeypatch, tmp_path, silver=[Query(error=DIED) for _ in range(50)])

    with pytest.raises(JobFailedError, match=r"silver stopped: .*exited unexpectedly"):
        scene.run()
    assert len(scene.launches) == DEATHS_MAX + 1


def test_a_failure_that_stays_stops_the_others_after_their_batch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    busy = Query(looks=3)
    scene = Scene(monkeypatch, tmp_path, bronze=[busy], silver=[Query(error=BROKEN)])

    with pytest.raises(JobFailedError, match="silver stopped: t-0 lost 5 to 9"):
        scene.run()

    assert busy.stopped
    assert busy.looks < 0, "it was stopped in the middle of a batch"
    states = {each.job.name: each.progress.state for each in scene.supervisor.watched}
    assert states == {"bronze": "stopped", "silver": "failed"}


def test_a_request_stops_all_after_their_batch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    queries = {"bronze": Query(looks=5), "silver": Query()}
    scene = Scene(monkeypatch, tmp_path, **{name: [each] for name, each in queries.items()})

    pictures = scene.run(lambda _: len(scene.launches) == 2)

    assert all(each.stopped for each in queries.values())
    assert [each.state for each in pictures[-1].jobs] == ["stopped", "stopped"]
