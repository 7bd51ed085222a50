"""Loads from real clients, and readers that check what was stored."""
