"""The APIs of credentials."""
