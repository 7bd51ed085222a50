"""Runs a storm for the Spark sink: kills, changing core counts, restored and copied checkpoints."""
