"""One broker's replica of a partition: appends, reads, checks, replication as a follower."""
