"""Judges the state of a cluster: pure functions that brokers and tools share."""
