"""`barnabas console`: the web console. It is a process of its own and reaches brokers by wire."""
