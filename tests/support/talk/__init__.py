"""Requests and answers in frames, with a node that has no sockets."""
