"""Checks simulated runs, after each event and at the end."""
