"""Ids, errors and ports that every layer shares."""
