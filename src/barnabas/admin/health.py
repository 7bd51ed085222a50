"""The verdict on a cluster that was asked over the wire; brokers use the same (`health/`)."""

from barnabas.health.cluster_verdict import Health, Verdict, verdict

__all__ = ["Health", "Verdict", "verdict"]
