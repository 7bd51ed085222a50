"""Certificates, brokers and clients with TLS and SASL, for tests."""
