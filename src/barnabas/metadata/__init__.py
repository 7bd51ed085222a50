"""What topics exist, and how each is configured."""
