"""Samples of GPUs: metrics, messages and topics, and the judgement of what a message says."""
