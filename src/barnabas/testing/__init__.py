"""Brokers and clusters for tests and notebooks, and the pytest fixtures."""
