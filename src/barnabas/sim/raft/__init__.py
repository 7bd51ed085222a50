"""Simulates a metadata quorum alone: members, network and checks."""
