"""A storm for the Spark sink: kills, other core counts, restored and copied checkpoints."""
