"""Transactions: their producers, their partitions, and how they end.

Each transactional id has one record in a partition of `__transaction_state`, in Kafka's format.

`state.py`                what is known of a transactional id, and its record
`transitions.py`          how one state becomes the next: the theory, and the table
`transaction_machine.py`  the coordinator: requests in, records out
"""
