"""Runs whole brokers and clients in one thread on a simulated network, disk and clock."""
