"""Grafana dashboards, written from one description: `python -m tools.dashboards`."""
