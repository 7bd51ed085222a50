"""Control batches of the metadata log: leader changes, voter sets, snapshot header and footer.

    key    version int16, type int16     2 leader change, 3 and 4 a snapshot's first and last,
                                         6 the voters (KIP-595, KIP-630, KIP-853)
    value  the message, in the version its first field names

Only Raft reads them. The records for the listener are in the other batches.
"""

import struct
from collections.abc import Sequence

from barnabas.model.errors import CorruptBatchError, WireError
from barnabas.model.ports import Buffer
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.leader_change_message import LeaderChangeMessage
from barnabas.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from barnabas.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from barnabas.protocol.messages.voters_record import VotersRecord
from barnabas.protocol.records import CONTROL, BatchHeader, Record, build, records

Headers = tuple[tuple[str, bytes | None], ...]

_KEY = struct.Struct(">hh")
_KINDS: dict[int, tuple[type[Message], int]] = {
    2: (LeaderChangeMessage, 1),
    3: (SnapshotHeaderRecord, 0),
    4: (SnapshotFooterRecord, 0),
    6: (VotersRecord, 0),
}
_NUMBERS = {cls: number for number, (cls, _) in _KINDS.items()}


def build_control(
    messages: Sequence[Message], now_ms: int, headers: Headers = (), *, epoch: int = -1
) -> bytearray:
    """Build a control batch of messages."""
    content = []
    for number, message in enumerate(messages):
        kind = _NUMBERS[type(message)]
        value = encoder(type(message), _KINDS[kind][1])(message)
        content.append(Record(number, now_ms, _KEY.pack(0, kind), value, headers))
    return build(content, attributes=CONTROL, leader_epoch=epoch)


def control_messages(batch: Buffer, header: BatchHeader) -> list[Message]:
    """Read the messages of a control batch; unknown types are skipped."""
    found = []
    for record in records(batch, header):
        if record.key is None or len(record.key) < _KEY.size:
            raise CorruptBatchError(f"a control record at offset {record.offset} has no type")
        known = _KINDS.get(_KEY.unpack_from(record.key)[1])
        if known is not None:
            try:
                found.append(decode_exact(known[0], known[1], record.value or b""))
            except WireError as error:
                raise CorruptBatchError(str(error)) from error
    return found
