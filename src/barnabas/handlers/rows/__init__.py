"""The APIs that a broker serves, one row each."""
