"""`barnabas queue`: work queues."""
