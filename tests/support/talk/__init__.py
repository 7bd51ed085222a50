"""Sends request frames to a node without sockets."""
