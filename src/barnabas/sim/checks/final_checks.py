"""Checks everything that clients saw, at the end of a run.

The auditor reads every partition at both isolation levels and the committed offsets of every group,
with the same requests as other clients.
"""

from collections import Counter
from collections.abc import Iterable

from barnabas.model.ids import TopicPartition
from barnabas.sim.checks.ledger import End, Ledger, OffsetRead, OffsetWrite, Sent, Txn
from barnabas.sim.checks.monotonic_checks import MonotonicChecks
from barnabas.sim.clients.actor import Talk
from barnabas.sim.clients.reader import Reader, Shown
from barnabas.sim.clients.simulated_member import GroupClient
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.simulated_shares import ShareGroups
from barnabas.sim.world import InvariantError, World


class AuditReader(Reader):
    """Reads a partition once, from the start to the end."""

    def life(self) -> Talk:
        """Read until there are no more records."""
        yield from self.read_to_end()


class AuditLookUp(GroupClient):
    """Fetches the committed offsets of a group until no transaction is about to change them."""

    partitions: list[TopicPartition]

    def life(self) -> Talk:
        """Repeat the request until the response is complete."""
        while not (yield from self.look_up(self.partitions)):
            yield from self.pause_before_retry()


def audit_readers(
    world: World,
    cluster: Cluster,
    ledger: Ledger,
    monotonic: MonotonicChecks,
    partitions: Iterable[TopicPartition],
) -> list[AuditReader]:
    """Return readers of all partitions, at both isolation levels."""
    return [
        AuditReader(
            world, cluster, f"audit-{partition}", ledger, monotonic, partition, committed=committed
        )
        for partition in partitions
        for committed in (False, True)
    ]


def check_records(ledger: Ledger, readers: Iterable[AuditReader]) -> None:
    """Check that every acknowledged record is at its acknowledged offset, once, and in order."""
    everything: dict[str, Shown] = {}
    visible: set[str] = set()
    for reader in readers:
        values = [shown.value for shown in reader.shown]
        if len(values) != len(set(values)):
            raise InvariantError(f"{reader.partition} contains a record twice: {values}")
        _check_order(ledger, reader)
        if reader.committed:
            visible.update(values)
        else:
            everything.update({shown.value: shown for shown in reader.shown})
    for sent in ledger.records.values():
        _check_place(sent, everything.get(sent.value))
        _check_plain(sent, everything, visible)
    for txn in ledger.txns:
        _check_txn(txn, visible)


def check_seen(readers: Iterable[Reader], audits: Iterable[AuditReader]) -> None:
    """Check that the records that readers saw during the run are the first records of the final
    log.
    """
    truth = {(audit.partition, audit.committed): audit.shown for audit in audits}
    for reader in readers:
        final = truth[reader.partition, reader.committed]
        if reader.shown != final[: len(reader.shown)]:
            raise InvariantError(f"{reader.name} saw {reader.shown}, but the final log has {final}")


def check_shares(shares: ShareGroups, queue_ledger: Ledger, readers: Iterable[AuditReader]) -> None:
    """Check that members of share groups got what the logs have, and passed over no record."""
    shown: dict[tuple[TopicPartition, bool], dict[int, str]] = {
        (reader.partition, reader.committed): {each.offset: each.value for each in reader.shown}
        for reader in readers
    }
    for sent in queue_ledger.records.values():
        for committed in (True, False) if sent.offset >= 0 else ():
            shown.setdefault((sent.partition, committed), {})[sent.offset] = sent.value
    shares.check_skipped(shown)
    for group in shares.groups.values():
        for place, partition in group.places.items():
            truth = shown.get((partition, False), {})
            shares.checks.check_values(place, truth)


def check_offsets(ledger: Ledger) -> None:
    """Check that offset fetches and commits are linearizable.

    A fetch must find the last commit, or one that overlaps with the fetch.
    """
    by_place: dict[tuple[str, TopicPartition], list[OffsetRead]] = {}
    for read in ledger.reads:
        by_place.setdefault((read.group, read.partition), []).append(read)
    for place, reads in by_place.items():
        writes = [w for w in ledger.writes.values() if (w.group, w.partition) == place]
        for read in reads:
            _check_read(read, writes)
        for earlier in reads:
            for later in reads:
                if earlier.answered_ms < later.sent_ms and later.is_current:
                    _check_pair(earlier, later)


def check_flow(ledger: Ledger, readers: Iterable[AuditReader], group: str) -> None:
    """Check that the flow produced one output record for each input record below its committed
    offset.
    """
    committed = [reader for reader in readers if reader.committed]
    made = Counter(
        ledger.records[shown.value].source for reader in committed for shown in reader.shown
    )
    last = {read.partition: read.write for read in ledger.reads if read.group == group}
    for reader in committed:
        write = last.get(reader.partition)
        upto = 0 if write is None else write.offset
        for shown in reader.shown if reader.partition in last else ():
            wanted = int(shown.offset < upto)
            if made[shown.value] != wanted:
                raise InvariantError(
                    f"{group} has read {reader.partition} up to {upto}, but {shown} has "
                    f"{made[shown.value]} output records"
                )


def resolve(ledger: Ledger, readers: Iterable[AuditReader], now_ms: int) -> None:
    """Find out how transactions ended whose producers got no response."""
    visible = {s.value for reader in readers if reader.committed for s in reader.shown}
    for txn in ledger.txns:
        if txn.outcome is None and txn.records:
            committed = any(sent.value in visible for sent in txn.records)
            txn.outcome = End.COMMIT if committed else End.ABORT
            for write in txn.offsets if committed else ():
                write.confirmed_ms = min(write.confirmed_ms, now_ms)


def _check_order(ledger: Ledger, reader: Reader) -> None:
    last: dict[str, int] = {}
    for shown in reader.shown:
        sent = ledger.records[shown.value]
        if last.get(sent.writer, -1) >= sent.number:
            raise InvariantError(
                f"{shown} of {sent.writer} comes after its record {last[sent.writer]}"
            )
        last[sent.writer] = sent.number


def _check_place(sent: Sent, found: Shown | None) -> None:
    if sent.acknowledged and found is None:
        raise InvariantError(f"{sent.value} was acknowledged at offset {sent.offset} but is lost")
    if found is not None and sent.offset not in (-1, found.offset):
        raise InvariantError(
            f"{sent.value} was acknowledged at offset {sent.offset} but is at {found.offset}"
        )


def _check_plain(sent: Sent, everything: dict[str, Shown], visible: set[str]) -> None:
    if sent.txn is None and (sent.value in everything) != (sent.value in visible):
        raise InvariantError(
            f"only one isolation level shows {sent.value}, which is not transactional"
        )


def _check_txn(txn: Txn, visible: set[str]) -> None:
    shown = [sent.value for sent in txn.records if sent.value in visible]
    if shown and not txn.may_commit:
        raise InvariantError(f"readers saw {shown} of {txn.name}, which was never committed")
    if shown and len(shown) < len(txn.records):
        raise InvariantError(f"readers saw only {shown} of {txn.name}")
    if txn.outcome is End.COMMIT and not shown and txn.records:
        raise InvariantError(f"{txn.name} was committed but readers did not see it")
    if txn.outcome is End.ABORT and shown:
        raise InvariantError(f"{txn.name} was aborted but readers saw it")


def _check_read(read: OffsetRead, writes: list[OffsetWrite]) -> None:
    found = read.write
    if found is not None:
        _check_found(found)
    for write in writes if read.is_current else ():
        if write.refused or write.confirmed_ms >= read.sent_ms:
            continue
        if found is None or write.sent_ms > found.stored_ms:
            name = "nothing" if found is None else found.note
            raise InvariantError(
                f"{read.group} has {name} for {read.partition} after {write.note} was confirmed"
            )


def _check_found(found: OffsetWrite) -> None:
    if found.refused:
        raise InvariantError(f"a fetch found {found.note}, which was refused")
    txn = found.txn
    if txn is not None and (not txn.may_commit or txn.outcome is End.ABORT):
        raise InvariantError(f"a fetch found {found.note} of {txn.name}, which was not committed")


def _check_pair(earlier: OffsetRead, later: OffsetRead) -> None:
    if earlier.write is None or later.write is earlier.write:
        return
    if later.write is None or later.write.stored_ms < earlier.write.sent_ms:
        name = "nothing" if later.write is None else later.write.note
        raise InvariantError(
            f"{later.group} went back from {earlier.write.note} to {name} for {later.partition}"
        )
