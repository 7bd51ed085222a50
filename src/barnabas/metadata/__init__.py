"""Cluster metadata: the records, the image that they produce, and the config definitions."""
