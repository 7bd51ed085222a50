"""Requests that confluent-kafka cannot make, over plain sockets."""
