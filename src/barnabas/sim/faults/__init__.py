"""Decides which faults happen in simulated runs, how often, and when."""
