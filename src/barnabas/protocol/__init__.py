"""Frames, message tables, codecs and record batches."""
