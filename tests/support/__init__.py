"""Helpers that tests, benchmarks and tools share: dialogues, clusters, loads, failing disks."""
