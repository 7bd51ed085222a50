"""Defines how many examples the property tests try.

CI tries a quarter of them. `make test-long` sets LONG_TESTS=1 and tries all.
"""

import os

LONG = os.environ.get("LONG_TESTS") == "1"
SHORT_PART = 4
SHORT_MIN = 15


def examples(count: int) -> int:
    """Return how many of a property's examples to try in this run."""
    return count if LONG else min(count, max(count // SHORT_PART, SHORT_MIN))
