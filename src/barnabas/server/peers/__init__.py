"""Connections from this broker to the others."""
