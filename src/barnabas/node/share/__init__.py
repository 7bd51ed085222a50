"""Share groups on the brokers that lead partitions: windows, sessions, and stored state."""
