"""The write side: encodes rows as record batches and sends the batches to partition leaders."""
