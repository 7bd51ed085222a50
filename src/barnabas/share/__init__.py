"""Share groups: which records of a partition are delivered to which member, as state machines."""
