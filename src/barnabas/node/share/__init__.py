"""Share groups on this broker: how it reaches the stored state of share partitions."""
