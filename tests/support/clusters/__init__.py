"""Clusters of broker processes under faults, and the checks of what they promised."""
