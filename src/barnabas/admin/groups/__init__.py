"""Consumer groups of a cluster: state, lag, resets."""
