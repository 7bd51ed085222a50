"""Data classes for the labels of a simulated fleet: what a perfect observer would report.

    {"gpu_id": ..., "finding": "starved", "start": ..., "end": ..., "optional": false, "detail": {}}
    {"gpu_id": ..., "state": "train_steady", "start": ..., "end": ..., "detail": {}}

A finding is true from start up to end, exclusive. An optional one follows from another (a card that
parks memory is also idle): reporting it is correct, and not reporting it is not a miss.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.telemetry.samples.sample_messages import format_time

FINDING = "finding"
STATE = "state"
NOTE = "note"
"""A finding that is true but that the pipeline need not report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """One label of one card."""

    gpu_id: str
    kind: str
    name: str
    start_ms: int
    end_ms: int
    optional: bool = False
    detail: Mapping[str, object] = field(default_factory=dict)

    def as_json(self) -> str:
        """Return the line of the labels file."""
        body: dict[str, object] = {
            "gpu_id": self.gpu_id,
            self.kind: self.name,
            "start": format_time(self.start_ms),
            "end": format_time(self.end_ms),
            "detail": dict(self.detail),
        }
        if self.kind == FINDING:
            body["optional"] = self.optional
        return json.dumps(body, separators=(",", ":"))
