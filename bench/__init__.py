"""Barnabas beside Apache Kafka: the same load on the same machine, one broker after the other."""
