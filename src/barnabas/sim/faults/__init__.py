"""Faults: how often they happen, and when."""
