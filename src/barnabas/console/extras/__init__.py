"""What the console shows from elsewhere: Spark's queries, GPU telemetry, Alertmanager."""
