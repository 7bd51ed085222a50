"""Producer and consumer: thin, typed faces of confluent-kafka."""
