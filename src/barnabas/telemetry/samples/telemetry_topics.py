"""The names of the pipeline's topics."""

SAMPLES = "gpu-telemetry"
"""What collectors send, keyed by GPU."""

REFUSED = "gpu-telemetry-dlq"
"""What silver refused: the original bytes, its coordinates and the reason in headers."""

ALERTS = "gpu-alerts"
"""Alerts, keyed by GPU and finding: raised, flapping, still, cleared."""

LATEST = "gpu-latest"
"""The latest state of each GPU, keyed by GPU; compacted."""

SILENCES = "gpu-silences"
"""Which alerts are not to be sent, keyed by silence; compacted."""
