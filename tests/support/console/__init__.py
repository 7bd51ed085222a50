"""A console in the tests: states without a cluster, a server on a thread, a client for its API."""
