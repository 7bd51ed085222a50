"""Members of a metadata quorum, and sets of replicas, without a network."""
