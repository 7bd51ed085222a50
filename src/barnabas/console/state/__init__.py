"""Answers from the last snapshot: overview, brokers, topics, groups, heat map, alerts, search."""
