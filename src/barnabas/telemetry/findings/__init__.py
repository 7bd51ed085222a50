"""Findings: rules and thresholds over windows, alerts, and an evaluation of their accuracy."""
