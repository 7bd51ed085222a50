"""Tests the bandwidth of links, by the name of a model."""

import math

import pytest

from barnabas.telemetry.windows.links import links_of


@pytest.mark.parametrize(
    ("model", "pcie_gb", "nvlink_gb"),
    [
        ("NVIDIA H200", 63, 450),
        ("NVIDIA H100 80GB HBM3", 63, 450),
        ("NVIDIA H100 PCIe", 63, 300),
        ("NVIDIA H100 NVL", 63, 300),
        ("NVIDIA A100-SXM4-80GB", 31.5, 300),
        ("NVIDIA B200", 63, 900),
        ("Tesla V100-SXM2-32GB", 15.8, 150),
    ],
)
def test_models(model: str, pcie_gb: float, nvlink_gb: float) -> None:
    found = links_of(model)
    assert found.pcie == pytest.approx(pcie_gb * 1e9, rel=0.01)
    assert found.nvlink == nvlink_gb * 1e9


def test_a_card_without_nvlink_and_cards_that_are_not_known() -> None:
    assert math.isnan(links_of("NVIDIA L40S").nvlink)
    assert links_of("NVIDIA L40S").pcie == pytest.approx(31.5e9, rel=0.01)
    for model in (None, "", "NVIDIA GB200", "NVIDIA H1000"):
        assert math.isnan(links_of(model).pcie)
