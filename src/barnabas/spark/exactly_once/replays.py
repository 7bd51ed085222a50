"""Detects repeated batches: the same rows are skipped, and other rows fail the query."""

from barnabas.spark.exactly_once.fingerprint import Fingerprint
from barnabas.spark.exactly_once.job_record import Record
from barnabas.spark.query_errors import ReplayError


def refuse_target(job: str, record: Record, batch: int, target: str) -> None:
    """Raise if a batch was written to another target."""
    if record.target != target:
        raise ReplayError(
            f"Batch {batch} of {job} was written to {record.target!r} before, and is now to be "
            f"written to {target!r}: the checkpoint was copied, or the option topic has changed. "
            "Nothing was written. Give this query a transactionalIdPrefix of its own, and it "
            "writes to the new topic from this batch on"
        )


def refuse_forgotten(job: str, record: Record, batch: int) -> None:
    """Raise if a batch is older than those that can be compared."""
    if record.decided(batch) is None:
        raise ReplayError(
            f"Batch {batch} of {job} comes after batch {record.next_batch - 1} was written, and "
            "is too old to be compared with what was written under its number: the checkpoint was "
            f"restored from a backup. Nothing was written. {_remedy(record)}"
        )


def refuse_other_rows(job: str, record: Record, batch: int, now: Fingerprint) -> None:
    """Raise if a batch has other rows than when it was written."""
    decided = record.decided(batch)
    if decided is not None and decided.written != now:
        then = decided.written
        counted = (
            f"it had {then.rows} rows then and has {now.rows} now"
            if then.rows != now.rows
            else f"its {then.rows} rows have another content now"
        )
        raise ReplayError(
            f"Batch {batch} of {job} was written before with other rows: {counted}. The checkpoint "
            "was restored from a backup, or the query or its input has changed. The rows of now "
            f"were not written. {_remedy(record)}"
        )


def refuse_older_version(group: str, batch: int) -> None:
    """Raise if a marker without a record covers a batch: an older version wrote it."""
    raise ReplayError(
        f"Batch {batch} was written at least in part by an older version of the sink, which kept "
        f"no record of the whole batch ({group}). Nothing was written. Let the older version "
        "finish this batch on the same number of cores, or set checkReplays=false, which skips "
        "the tasks that the older version has committed, as it would have done itself"
    )


def lost(job: str, record: Record, tasks: list[int]) -> ReplayError:
    """Return the error of a batch of which only a part is in the topics."""
    batch = record.next_batch - 1
    listed = ", ".join(str(each) for each in tasks[:10])
    return ReplayError(
        f"Batch {batch} of {job} is written in part: the transactions of task {listed} ended "
        "before they were committed, because the driver stayed away for longer than "
        "kafka.transaction.timeout.ms. The other tasks are committed. Start the query again with "
        "the number of cores and of shuffle partitions that it had, and these tasks write their "
        f"rows ({sum(each.written.rows for each in record.tickets if each.task in tasks)})"
    )


def _remedy(record: Record) -> str:
    last = record.next_batch - 1
    return (
        "Restore the newest checkpoint to go on behind what was written. To write the rows "
        "all the same, set transactionalIdPrefix to another name. To skip them, set "
        f"checkReplays=false until the query has passed batch {last}"
    )
