"""Append-only logs: segments, indexes, recovery, retention and compaction."""
