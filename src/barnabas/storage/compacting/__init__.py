"""Log compaction: chooses the records to keep, rewrites segments and swaps them in."""
