"""The sources of a collector, each an iterator of samples in order.

exporters      live     scraped at intervals
nvidia-smi     live     the output of a process
files          replay   or live, if a growing file is followed
sample         replay   the bundled recording
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path

from barnabas.telemetry.collect.collecting import Item
from barnabas.telemetry.collect.inputs import (
    FileFormat,
    InputError,
    follow_lines,
    read_lines,
    read_rows,
)
from barnabas.telemetry.collect.live_smi import live_lines
from barnabas.telemetry.collect.pacing import Clock, RealClock, repeated
from barnabas.telemetry.collect.scraping import Scraping
from barnabas.telemetry.collect.targets import Target
from barnabas.telemetry.samples import recording
from barnabas.telemetry.samples.readings import Reading, Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Layout


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The settings that all sources share."""

    layout: Layout
    hostname: str
    """The hostname of the cards, if the source does not say."""
    zone: tzinfo = UTC
    clock: Clock = field(default_factory=RealClock)
    while_waiting: Callable[[], None] = lambda: None
    is_stopping: Callable[[], bool] = lambda: False
    tally: Tally = field(default_factory=Tally)

    def files(
        self,
        paths: Sequence[Path],
        file_format: FileFormat = FileFormat.AUTO,
        *,
        loop: int = 1,
        start_ms: int | None = None,
        end_ms: int | None = None,
    ) -> Iterator[Item]:
        """Read files one after the other, `loop` times over."""
        missing = [str(path) for path in paths if not path.exists() or path.is_dir()]
        if missing:
            raise InputError(f"There is no file {missing[0]}; check the name")

        def once() -> Iterator[Reading]:
            for path in paths:
                yield from self._rows(read_lines(path), file_format, str(path))

        return repeated(once, loop, start_ms=start_ms, end_ms=end_ms)

    def followed(self, path: Path, file_format: FileFormat = FileFormat.AUTO) -> Iterator[Item]:
        """Read a file, and continue as it grows."""
        if path.suffix == ".gz" or not path.is_file():
            raise InputError(f"{path} cannot be followed; name a plain file that is there")
        cut: list[Refusal] = []

        def on_cut(number: int, line: bytes) -> None:
            reason = "the file was replaced or emptied while this line was written"
            cut.append(Refusal(where=f"{path} line {number}", reason=reason, raw=line))

        lines = follow_lines(
            path, self.clock, self.while_waiting, on_cut=on_cut, is_stopping=self.is_stopping
        )
        return _with_cut(self._rows(lines, file_format, str(path)), cut)

    def sample(
        self,
        name: str,
        *,
        loop: int = 1,
        start_ms: int | None = None,
        end_ms: int | None = None,
    ) -> Iterator[Item]:
        """Replay a bundled recording."""
        if name not in recording.NAMES:
            raise InputError(f"There is no sample {name!r}; there is {', '.join(recording.NAMES)}")
        source = partial(recording.snapshots, name, self.hostname)
        return repeated(source, loop, start_ms=start_ms, end_ms=end_ms)

    def exporters(
        self,
        targets: Callable[[], Sequence[Target]],
        *,
        interval_s: float,
        timeout_s: float | None = None,
        rounds: int | None = None,
    ) -> Iterator[Item]:
        """Scrape dcgm-exporters; read the targets again before every round."""
        return iter(
            Scraping(
                targets,
                interval_s=interval_s,
                timeout_s=timeout_s,
                rounds=rounds,
                clock=self.clock,
                tally=self.tally,
                while_waiting=self.while_waiting,
                is_stopping=self.is_stopping,
            )
        )

    def nvidia_smi(self, *, interval_ms: int, rounds: int | None) -> Iterator[Item]:
        """Run nvidia-smi on this machine."""
        lines = live_lines(interval_ms)
        readings = self._rows(lines, FileFormat.NVIDIA_SMI, "nvidia-smi")
        return readings if rounds is None else _first_rounds(readings, rounds)

    def _rows(
        self, lines: Iterator[tuple[int, str]], file_format: FileFormat, where: str
    ) -> Iterator[Reading]:
        return read_rows(
            lines,
            file_format,
            where=where,
            hostname=self.hostname,
            zone=self.zone,
            tally=self.tally,
            joined=self.layout is Layout.SNAPSHOT,
        )


def _with_cut(readings: Iterable[Reading], cut: list[Refusal]) -> Iterator[Reading]:
    """Return readings, and between them the truncated lines."""
    for reading in readings:
        yield from cut
        cut.clear()
        yield reading


def _first_rounds(readings: Iterable[Reading], rounds: int) -> Iterator[Reading]:
    """Return readings until some card has had all its rounds and appears again."""
    seen: Counter[str] = Counter()
    for reading in readings:
        if not isinstance(reading, Refusal):
            if seen[reading.gpu_id] == rounds:
                return
            seen[reading.gpu_id] += 1
        yield reading
