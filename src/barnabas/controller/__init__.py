"""Turns administrative requests into metadata records."""
