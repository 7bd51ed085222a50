"""A whole broker and its clients in one thread: a simulated network, disk and clock, one seed."""
