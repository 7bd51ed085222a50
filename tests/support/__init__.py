"""What tests, benchmarks and tools share: dialogues, clusters, loads, disks that fail."""
