"""Crowds of group members on real clients, and the check of what they saw."""
