"""Tests nvidia-smi as a process: a script replaces it and prints the output of driver 580."""

from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from barnabas.telemetry.collect.collector_sources import Sources
from barnabas.telemetry.collect.live_smi import SmiError, live_lines
from barnabas.telemetry.samples.sample_messages import Layout, Snapshot

OLD_DRIVER = """\
#!/bin/sh
for word in "$@"; do
  case "$word" in *clocks_event_reasons.active*)
    echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; echo; exit 2;;
  esac
done
echo "timestamp, index, uuid, name, utilization.gpu [%], temperature.memory"
while true; do
  echo "2026/11/15 15:23:42.995, 0, GPU-a, NVIDIA H200, 7 %, N/A"
  echo "2026/11/15 15:23:42.997, 1, GPU-b, NVIDIA H200, 9 %, N/A"
done
"""


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "nvidia-smi"
    program.write_text(OLD_DRIVER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def test_fields_that_the_driver_does_not_know_are_left_out(nvidia_smi: Path) -> None:
    with closing(live_lines(100)) as lines:
        found = list(islice(lines, 2))
    assert found[0][1].startswith("timestamp, index, uuid")
    assert found[1][0] == 2


def test_rounds_end_with_every_card_seen_as_often(nvidia_smi: Path) -> None:
    sources = Sources(layout=Layout.SNAPSHOT, hostname="here")
    found = [
        each for each in sources.nvidia_smi(interval_ms=100, rounds=2) if isinstance(each, Snapshot)
    ]
    assert [each.gpu_id for each in found] == ["GPU-a", "GPU-b", "GPU-a", "GPU-b"]
    assert found[1].device == "nvidia1"
    assert sources.tally.no_value >= 4


def test_a_failure_says_what_nvidia_smi_said(nvidia_smi: Path) -> None:
    nvidia_smi.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n")
    with pytest.raises(SmiError, match="NVIDIA-SMI has failed"):
        list(live_lines(100))


def test_a_missing_program_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SmiError, match="install NVIDIA's driver"):
        next(live_lines(100))
