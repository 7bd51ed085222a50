"""Share groups: which records each group has acquired, acknowledged, or may still get (KIP-932).

The leader of a partition has a window for each group: what is acquired, and by which member.

`window.py`                     the window of a share partition
`cells.py`, `record_leases.py`  what the window keeps for each offset, and for what members hold
`dead_letter_records.py`        dead letters, and where they came from
`flood_breaker.py`              a pause where too many records become dead letters

The stored state of a share partition is in a partition of `__share_group_state`, in Kafka's format.

`state_batches.py`        how runs of offsets with a state are merged
`shipments.py`            what was sent to the dead-letter topic, in those messages and records
`share_records.py`        what is known of a share partition, and its records
`share_state_machine.py`  the share coordinator: requests in, records out
`share_state_tidying.py`  snapshots of cold share partitions, and deletion of what they replace
"""
