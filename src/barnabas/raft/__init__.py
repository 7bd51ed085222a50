"""The metadata quorum: a replicated log of batches, in the manner of KRaft, without I/O."""
