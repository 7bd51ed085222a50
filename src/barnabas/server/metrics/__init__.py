"""The metrics of a broker: what counts them, and their text for Prometheus."""
