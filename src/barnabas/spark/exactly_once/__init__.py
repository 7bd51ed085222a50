"""The sink's commit protocol: the driver decides each batch once, for all its tasks (ADR 16)."""
