"""Simulates a day of a fleet whose exporters misbehave in turn, from their pages to the tables."""
