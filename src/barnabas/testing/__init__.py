"""Brokers for tests and notebooks."""
