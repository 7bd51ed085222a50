"""Query and change a cluster, for the CLI, the console and exporters; no terminal code."""
