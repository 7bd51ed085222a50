"""Every Kafka message; written by tools/generate_messages.py, never by hand."""
