"""Counts and durations in messages; brokers use the same (`model/phrases.py`)."""

from barnabas.model.phrases import format_duration, plural

__all__ = ["format_duration", "plural"]
