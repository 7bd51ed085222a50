"""APIs that write, read and delete records."""
