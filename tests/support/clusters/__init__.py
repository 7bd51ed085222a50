"""Runs clusters of broker processes under faults, and checks that they kept their guarantees."""
