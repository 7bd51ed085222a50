"""Compares a topic with the sequence numbers that were written to it, without Spark.

    python -m tests.support.pipelines.spark_storm.sequence_check \\
        --bootstrap HOST:PORT --topic out --rows 5000

It reads the topic with librdkafka and isolation.level=read_committed. The values must be the
numbers from 0 to rows - 1, each once. It exits with 0 if they are, and prints the differences.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from tests.support.loads.topic_reading import committed_records

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """The content of a topic, compared with the expected numbers."""

    rows: int
    missing: int
    doubled: int
    foreign: int
    examples: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether every number is there once, and nothing else."""
        return not (self.missing or self.doubled or self.foreign)


def compare(values: Iterable[bytes | None], rows: int) -> Verdict:
    """Compare values with the numbers below `rows`."""
    seen = Counter((value or b"").decode(errors="replace") for value in values)
    expected = {str(number) for number in range(rows)}
    missing = expected - set(seen)
    doubled = [value for value, count in seen.items() if count > 1 and value in expected]
    foreign = set(seen) - expected
    examples = [
        *(f"missing {value}" for value in sorted(missing, key=int)[:SHOWN]),
        *(f"{seen[value]} times {value}" for value in sorted(doubled, key=int)[:SHOWN]),
        *(f"foreign {value!r}" for value in sorted(foreign)[:SHOWN]),
    ]
    return Verdict(sum(seen.values()), len(missing), len(doubled), len(foreign), tuple(examples))


def check(bootstrap: str, topic: str, rows: int) -> Verdict:
    """Read a topic and compare it."""
    return compare((each.value for each in committed_records(bootstrap, topic)), rows)


def main(arguments: list[str] | None = None) -> int:
    """Check one topic, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rows", type=int, required=True)
    given = parser.parse_args(arguments)
    verdict = check(given.bootstrap, given.topic, given.rows)
    sys.stdout.write(json.dumps(asdict(verdict)) + "\n")
    return 0 if verdict.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
