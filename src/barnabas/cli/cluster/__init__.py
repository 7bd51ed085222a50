"""`barnabas cluster`: local clusters, and the state and brokers of any cluster."""
