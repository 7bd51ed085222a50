"""Watches a cluster over the wire: its state, and rates, lag in seconds and trends over time."""
