"""Tests that the bundled recording is complete, and that its phases are those of the file."""

from itertools import pairwise
from statistics import median

from barnabas.telemetry.samples import recording


def values(phase_name: str, metric: str) -> list[float]:
    phase = next(each for each in recording.phases() if each.name == phase_name)
    return [
        each.metrics[metric]
        for each in recording.snapshots()
        if phase.start_ms <= each.timestamp_ms < phase.end_ms
    ]


def test_it_is_whole() -> None:
    found = list(recording.snapshots())
    assert len(found) == 2832
    assert {each.model for each in found} == {"NVIDIA H200"}
    assert {len(each.metrics) for each in found} == {16}
    assert all(a.timestamp_ms < b.timestamp_ms for a, b in pairwise(found))


def test_phases_and_samples_agree() -> None:
    assert [each.name for each in recording.phases()][:3] == ["idle", "matmul_bf16", "memory_copy"]
    assert median(values("matmul_bf16", "DCGM_FI_DEV_POWER_USAGE")) > 680
    assert median(values("memory_held_idle", "DCGM_FI_DEV_FB_USED")) > 100_000
    assert max(values("idle", "DCGM_FI_DEV_GPU_UTIL")) == 0
