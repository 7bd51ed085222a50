"""Statistics of event-time windows."""
