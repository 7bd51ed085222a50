"""Records as they were read from the wire."""

from typing import NamedTuple

from barnabas.protocol.records import Record


class FoundRecord(NamedTuple):
    """One record, with the batch that it came in."""

    topic: str
    partition: int
    record: Record
    leader_epoch: int
    is_append_time: bool

    @property
    def size_bytes(self) -> int:
        """The bytes of key, value and headers."""
        record = self.record
        headers = sum(len(name) + len(value or b"") for name, value in record.headers)
        return len(record.key or b"") + len(record.value or b"") + headers
