"""Simulated clients: producers, consumers, group members, operators."""
