"""Retention of the lake's tables: removes files whose rows are all too old, and merges small ones.

    retention_plan   chooses the files to remove and to merge; no I/O
    consumers        the progress of the jobs that read a table, from their checkpoints
    delta_log        the same change as one commit of a Delta log
    retention_run    carries out a plan

It is safe while jobs and readers run:

- It only changes files of complete batches that every job which reads the table has committed. A
  job never reads such a batch again.
- A merged file is named after its batches and appears by a rename; from that moment it replaces
  their files, and readers ignore these (`retention_plan.visible`). Then the files are removed.
  After a kill in between the lake has the same rows, and the next run continues.
- If a reader has listed files that are then removed, it lists the files again.
"""
