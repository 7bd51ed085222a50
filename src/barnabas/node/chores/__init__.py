"""Background work: retention, compaction, checkpoints, scrubbing."""
