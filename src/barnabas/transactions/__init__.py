"""Transactions: who writes in one, to which partitions, and how it ends."""
