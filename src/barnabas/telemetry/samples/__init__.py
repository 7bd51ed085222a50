"""GPU samples: metrics, message formats, topics, and the validation of messages."""
