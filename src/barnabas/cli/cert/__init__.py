"""`barnabas cert`: certificates for test clusters."""
