"""A Kafka client over plain sockets, for requests that confluent-kafka cannot make."""
