"""The HTTP listener of a broker: metrics, health, slow requests."""
