"""The retriable errors that a client may see while brokers stop and start."""

import sys

from confluent_kafka import KafkaError

CONNECTION_ERRORS = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
}
"""Errors after which librdkafka reconnects by itself."""


def report_error(error: KafkaError) -> None:
    """Write an error to stderr, unless the client recovers by itself."""
    if error.fatal() or not (error.retriable() or error.code() in CONNECTION_ERRORS):
        sys.stderr.write(f"{error.name()}: {error.str()}\n")
        sys.stderr.flush()
