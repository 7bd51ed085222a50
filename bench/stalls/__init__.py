"""Measures the latency of polite clients under rude clients, background work and a slow disk."""
