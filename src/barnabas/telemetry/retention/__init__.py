"""Retention of the lake's tables: removes files whose rows are all too old, and merges small ones.

    retention_plan   which files are removed and which are merged; no I/O
    consumers        how far the jobs that read a table have come, from their checkpoints
    delta_log        the same change as one commit of a Delta log
    retention_run    carries a plan out

What makes it safe while jobs and readers run:

- Only files of batches are touched that are complete and that every job which reads the table has
  committed. A job never asks for such a batch again.
- A merged file is named after the batches in it and appears by a rename; from that moment it
  stands for their files, and readers leave these out (`retention_plan.visible`). Then the files are
  removed. A kill in between leaves a lake with the same rows, and the next run goes on from there.
- A reader that has listed the files before finds them gone and says so; it lists them again.
"""
