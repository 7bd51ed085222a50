"""The capacity of a card's PCIe and NVLink links, and the traffic over them.

    PCIe     to the host: by generation and lanes where they are sampled, else by model
    NVLink   to other cards: by model

Capacities are those of one direction, in bytes a second, including protocol headers, like DCGM's
traffic counters. A model that is not in the table has no known capacity, and no findings about its
links.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from barnabas.telemetry.windows import statistics as st

GB = 1e9
LANE_BYTES = {1: 0.25 * GB, 2: 0.5 * GB, 3: 0.985 * GB, 4: 1.969 * GB, 5: 3.938 * GB, 6: 7.563 * GB}
"""The bytes that a lane of each PCIe generation moves in one direction, after line coding."""
LANES = 16
"""The number of lanes of every card in the table below."""

SILVER_COLUMNS = (
    *("dram_active", "tensor_active", "pcie_tx", "pcie_rx", "nvlink_tx", "nvlink_rx"),
    *("pcie_link_gen", "pcie_link_width"),
)
"""The columns of silver that `columns_of` reads."""

GOLD_COLUMNS = (
    *("dram_active_mean", "tensor_active_mean"),
    *("pcie_traffic", "pcie_capacity", "nvlink_traffic", "nvlink_capacity"),
)
"""The columns of gold that it returns."""


class Links(NamedTuple):
    """The capacity of a card's links; NaN if it is not known."""

    pcie: float
    nvlink: float


def _links(generation: int | None, nvlink_gb: float | None) -> Links:
    pcie = np.nan if generation is None else LANE_BYTES[generation] * LANES
    return Links(pcie, np.nan if nvlink_gb is None else nvlink_gb * GB)


UNKNOWN = _links(None, None)
BY_WORDS = (
    ({"H100", "NVL"}, _links(5, 300)),
    ({"H100", "PCIE"}, _links(5, 300)),
    ({"GB300"}, _links(None, 900)),
    ({"GB200"}, _links(None, 900)),
    ({"GH200"}, _links(None, 450)),
    ({"B300"}, _links(6, 900)),
    ({"B200"}, _links(5, 900)),
    ({"H200"}, _links(5, 450)),
    ({"H100"}, _links(5, 450)),
    ({"H20"}, _links(5, 450)),
    ({"H800"}, _links(5, 200)),
    ({"A100"}, _links(4, 300)),
    ({"A800"}, _links(4, 200)),
    ({"A30"}, _links(4, 100)),
    ({"A40"}, _links(4, 56.25)),
    ({"A10"}, _links(4, None)),
    ({"L40S"}, _links(4, None)),
    ({"L40"}, _links(4, None)),
    ({"L4"}, _links(4, None)),
    ({"V100"}, _links(3, 150)),
    ({"T4"}, _links(3, None)),
)
"""By words of the model's name; the first match is used. Data sheets give the sum of NVLink's two
directions, this table has one. The CPU of a GB or GH superchip is not only reached over PCIe."""


def links_of(model: str | None) -> Links:
    """Return the capacity of a model's links."""
    words = set(re.split(r"[^A-Z0-9]+", (model or "").upper()))
    return next((links for wanted, links in BY_WORDS if wanted <= words), UNKNOWN)


def columns_of(
    sampled: Mapping[str, np.ndarray], models: Iterable[str | None], cell: np.ndarray, cells: int
) -> dict[str, object]:
    """Return the columns of gold about memory and links, a value for each cell.

    PCIe's two directions are added: a job that copies to the host and then back keeps the link busy
    all the time, but each direction only half of it. For NVLink the busier direction counts, since
    collective operations send and receive at the same time.
    """

    def mean(name: str) -> np.ndarray:
        return st.mean(sampled[name], cell, cells)

    known = [links_of(model) for model in models]
    pcie = np.array([each.pcie for each in known])
    seen = _pcie_capacity(sampled, cell, cells)
    return {
        "dram_active_mean": mean("dram_active"),
        "tensor_active_mean": mean("tensor_active"),
        "pcie_traffic": _sum_of_known(mean("pcie_tx"), mean("pcie_rx")),
        "pcie_capacity": np.where(np.isnan(seen), pcie, seen),
        "nvlink_traffic": np.fmax(mean("nvlink_tx"), mean("nvlink_rx")),
        "nvlink_capacity": np.array([each.nvlink for each in known]),
    }


def _pcie_capacity(sampled: Mapping[str, np.ndarray], cell: np.ndarray, cells: int) -> np.ndarray:
    """Return the capacity of a sampled link, which is lower while the link saves power."""
    generation, width = (
        st.summary(sampled[name], cell, cells).max for name in ("pcie_link_gen", "pcie_link_width")
    )
    lane = np.full(cells, np.nan)
    for number, capacity in LANE_BYTES.items():
        lane[generation == number] = capacity
    return np.where(width > 0, lane * width, np.nan)


def _sum_of_known(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    total = np.nan_to_num(one) + np.nan_to_num(other)
    return np.where(np.isnan(one) & np.isnan(other), np.nan, total)
