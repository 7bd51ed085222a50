"""Brokers and clusters for tests and notebooks, and the fixtures of pytest."""
