"""Tests dcgm-exporter's text, old and new, complete and damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.telemetry.collect.exporter_pages import PageReader, problem
from barnabas.telemetry.collect.exposition import parse_labels
from barnabas.telemetry.samples.readings import Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Snapshot

H100 = "GPU-a8affe7e-7930-ae20-3fc6-4b0edf3ebbf3"
OLD = "GPU-8c16e996-bd76-aa91-17e7-b48bcd0208ba"
PAGE = f"""\
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{{gpu="0",UUID="{H100}",pci_bus_id="00000000:0D:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a",DCGM_FI_DRIVER_VERSION="580.126.09",container="main",namespace="research",pod="train-0"}} 1980
DCGM_FI_DEV_SM_CLOCK{{gpu="1", UUID="{OLD}", device="nvidia1"}} 885
# HELP DCGM_FI_DEV_MEMORY_TEMP Memory temperature (in C).
# TYPE DCGM_FI_DEV_MEMORY_TEMP gauge
DCGM_FI_DEV_MEMORY_TEMP{{gpu="1", UUID="{OLD}", device="nvidia1"}} 9223372036854775794
# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="{H100}",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node-a"}} 310.629000
# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Total energy consumption since boot (in mJ).
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="1", UUID="{OLD}", device="nvidia1"}} 31035686671
"""  # noqa: E501 - the exporter's lines are long
AT_MS = 1_794_725_694_154


def read(text: str, tally: Tally | None = None) -> list[Snapshot | Refusal]:
    reader = PageReader(where="page", default_hostname="10.0.0.7")
    return list(reader.read(text, at_ms=AT_MS, tally=tally or Tally()))


def test_a_page_becomes_a_snapshot_a_card() -> None:
    tally = Tally()
    new, old = read(PAGE, tally)
    assert new == Snapshot(
        timestamp_ms=AT_MS,
        gpu_id=H100,
        device="nvidia0",
        hostname="node-a",
        model="NVIDIA H100 80GB HBM3",
        labels={
            "gpu": "0",
            "pci_bus_id": "00000000:0D:00.0",
            "DCGM_FI_DRIVER_VERSION": "580.126.09",
            "container": "main",
            "namespace": "research",
            "pod": "train-0",
        },
        metrics={"DCGM_FI_DEV_SM_CLOCK": 1980, "DCGM_FI_DEV_POWER_USAGE": 310.629},
    )
    assert isinstance(old, Snapshot)
    assert (old.hostname, old.device) == ("10.0.0.7", "nvidia1")
    assert old.metrics == {
        "DCGM_FI_DEV_SM_CLOCK": 885,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 31035686671,
    }
    assert tally.no_value == 1


def test_instances_of_a_card_are_distinguished_by_their_labels() -> None:
    lines = [
        f'DCGM_FI_PROF_SM_ACTIVE{{UUID="GPU-1",GPU_I_PROFILE="1g",GPU_I_ID="{each}"}} 0.{each}'
        for each in (7, 8)
    ]
    first, second = read("\n".join(lines))
    assert isinstance(first, Snapshot)
    assert isinstance(second, Snapshot)
    assert (first.gpu_id, second.gpu_id) == ("GPU-1", "GPU-1")
    assert (first.labels["GPU_I_ID"], second.labels["GPU_I_ID"]) == ("7", "8")
    assert first.labels["GPU_I_PROFILE"] == "1g"
    assert second.metrics == {"DCGM_FI_PROF_SM_ACTIVE": 0.8}


@pytest.mark.parametrize(
    "line",
    [
        "garbage line",
        'DCGM_FI_DEV_GPU_TEMP{gpu="2" 5',
        'DCGM_FI_DEV_GPU_TEMP{gpu="4"}',
        'DCGM_FI_DEV_GPU_TEMP{gpu="5",UUID="unterminated} 5',
        'DCGM_FI_DEV_GPU_TEMP{gpu="6"} 5',
        'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1"} +Inf',
        'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1"} 1_0',
        'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1",UUID="GPU-2"} 10',
        'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1"} 10 # no exemplar',
        'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1"} 10 soon',
        "}{",
    ],
)
def test_a_broken_line_is_refused_and_hurts_no_other(line: str) -> None:
    good = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1"} 41'
    found = read(f"{good}\n{line}\n{good.replace('GPU-1', 'GPU-2')}\n")
    refusals = [each for each in found if isinstance(each, Refusal)]
    assert [each.gpu_id for each in found if isinstance(each, Snapshot)] == ["GPU-1", "GPU-2"]
    assert [(each.where, each.raw) for each in refusals] == [("page line 2", line.encode())]
    assert refusals[0].reason


def test_unknown_values_are_counted() -> None:
    tally = Tally()
    page = 'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1"} NaN\nprocess_cpu_seconds_total 17\n'
    assert read(page, tally) == []
    assert (tally.no_value, dict(tally.unknown)) == (1, {"process_cpu_seconds_total": 1})


@given(st.text(st.sampled_from('aU{}=",\\ 1.\n#e-\x00é'), max_size=40))
def test_no_garbage_stops_the_reader(text: str) -> None:
    assert len(read(text)) <= text.count("\n") + 1


def test_label_text() -> None:
    text = 'Hostname="node-a",UUID="GPU-1",__name__="DCGM_FI_DEV_GPU_UTIL",pod="a\\"b,c}"'
    found = parse_labels(text)
    assert (found["Hostname"], found["UUID"], found["pod"]) == ("node-a", "GPU-1", 'a"b,c}')
    assert parse_labels('{gpu="0", UUID="GPU-8c"}') == {"gpu": "0", "UUID": "GPU-8c"}
    assert parse_labels("") == {}
    with pytest.raises(ValueError, match="Invalid labels"):
        parse_labels("nonsense")


def test_labels_of_the_target_are_added_and_the_page_wins() -> None:
    labels = {"rack": "r7", "pod": "exporter", "hostname": "node-9"}
    reader = PageReader(where="page", default_hostname="10.0.0.7", labels=labels)
    page = 'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1",pod="train-0"} 41\n'
    (found,) = reader.read(page, at_ms=AT_MS, tally=Tally())
    assert isinstance(found, Snapshot)
    assert (found.hostname, found.labels) == ("node-9", {"rack": "r7", "pod": "train-0"})


def test_a_reader_forgets_labels_that_no_longer_come() -> None:
    reader = PageReader(where="page", default_hostname="h")
    for number in range(3_000):
        page = f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-1",pod="train-{number}"}} 41\n'
        assert len(list(reader.read(page, at_ms=AT_MS, tally=Tally()))) == 1
    assert len(reader._owners) <= 1_004


@pytest.mark.parametrize(
    ("page", "word"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ('DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1"} 12', "cut short"),
        ("<html>Please log in</html>\n", "without metrics of DCGM"),
        ("go_goroutines 7\n", "without metrics of DCGM"),
        ('DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1"} 120.5\n', ""),
        ('# HELP x\nDCGM_FI_DEV_POWER_USAGE{UUID="GPU-1"} 120.5\n# EOF', ""),
    ],
)
def test_incomplete_and_foreign_pages_are_reported(page: str, word: str) -> None:
    assert word in problem(page)
    assert bool(word) == bool(problem(page))
