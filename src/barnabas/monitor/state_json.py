"""A `ClusterState` as a JSON document, for scripts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass

from barnabas.monitor.states import ClusterState

NEVER = "never"
"""What stands for an infinite time, which JSON has no number for."""


def state_document(state: ClusterState) -> dict[str, object]:
    """Return the state with its field names; unknown values are null."""
    return {
        "taken_ms": state.taken_ms,
        "took_ms": state.took_ms,
        "interval_s": state.interval_s,
        **state.overview.as_json(),
        "health": state.health.as_json(),
        "throughput": {
            "records_per_s": state.records_per_s,
            "bytes_per_s": state.bytes_per_s,
            "bytes_in_per_s": state.bytes_in_per_s,
            "bytes_out_per_s": state.bytes_out_per_s,
            "produce_p99_s": state.produce_p99_s,
            "fetch_p99_s": state.fetch_p99_s,
        },
        "disks": {str(broker): plain(disk) for broker, disk in state.disks.items()},
        "figures": {str(broker): plain(each) for broker, each in state.figures.items()},
        "topics": [plain(topic) for topic in state.topics.values()],
        "groups": [plain(group) for group in state.groups.values()],
        "troubles": list(state.troubles),
    }


def plain(value: object) -> object:
    """Return a value of dataclasses, mappings and sequences as JSON knows it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(each) for name, each in asdict(value).items()}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return NEVER
    return value
