"""The names of the pipeline's topics."""

SAMPLES = "gpu-telemetry"
"""Samples from collectors, keyed by GPU."""

REFUSED = "gpu-telemetry-dlq"
"""Messages that silver refused: the original bytes, with origin and reason in headers."""

ALERTS = "gpu-alerts"
"""Alerts, keyed by GPU and finding: raised, flapping, still, cleared."""

LATEST = "gpu-latest"
"""The latest state of each GPU, keyed by GPU; compacted."""

SILENCES = "gpu-silences"
"""Silences of alerts, keyed by silence; compacted."""
