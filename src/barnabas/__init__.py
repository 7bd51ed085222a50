"""Barnabas: a message queue in Python that any Kafka client can use unchanged."""

__version__ = "0.1.0"
