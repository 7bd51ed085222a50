"""The commit protocol of the sink: one decision a batch, whatever the number of tasks (ADR 16)."""
