"""Replication: what a leader knows of its followers, and how a follower fetches."""
