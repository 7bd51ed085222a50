"""Benchmarks of Barnabas and Apache Kafka: the same load on the same machine, one broker at a
time.
"""
