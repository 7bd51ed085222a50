"""Helpers for Structured Streaming: decoding values, windows, joins and changelog tables."""
