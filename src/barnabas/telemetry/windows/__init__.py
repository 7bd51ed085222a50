"""Statistics of windows of event time."""
