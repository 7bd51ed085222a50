"""`barnabas group`: consumer groups."""
