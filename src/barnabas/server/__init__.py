"""The event-loop edge: sockets, files, threads and timers meet the node here."""
