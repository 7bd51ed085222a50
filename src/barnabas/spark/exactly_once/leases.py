"""Leases job names to batch jobs that have no txnAppId, and reuses names that are free again.

A job without txnAppId writes under the first name of `<prefix>-job-0`, `<prefix>-job-1`, ... that
no other job holds. The record of a name says which job holds it; a job that ends deletes the
record. If a job was killed, the record stays: the next job finds that the driver in it no longer
listens, or that its transactions have timed out. It takes over the name, and aborts open
transactions.
"""

import contextlib
import socket
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from barnabas.spark.exactly_once.attempts import Attempt
from barnabas.spark.exactly_once.claims import taken_over
from barnabas.spark.exactly_once.job_record import Record
from barnabas.spark.exactly_once.job_register import Register
from barnabas.spark.exactly_once.leftover_endings import abort_leftovers
from barnabas.spark.sink.batch_sending import DeliveryError
from barnabas.spark.sink.sink_cluster import Cluster
from barnabas.spark.sink.sink_options import SinkOptions
from barnabas.wire.wire_failures import LinkError

NAMES_MAX = 1000
LOOKS_MAX = 16
CONNECT_TIMEOUT_S = 1.0


def leased(cluster: Cluster, options: SinkOptions, attempt: Attempt, topic: str) -> Attempt:
    """Return the attempt under a name that its job holds."""
    for number in range(NAMES_MAX):
        named = replace(attempt, job=job_name(options, number))
        register = Register(cluster, named.job, options.delivery.delivery_timeout_ms)
        record = register.read()
        if record is None or (record.run != attempt.run and is_free(record, attempt.owner)):
            record = register.change(topic, partial(_taken, cluster, options, named))
        if record is not None and record.run == attempt.run:
            return named
    raise DeliveryError(
        f"{NAMES_MAX} jobs write under transactionalIdPrefix {options.id_prefix!r} at once; give "
        "some of them another prefix"
    )


def release(cluster: Cluster, options: SinkOptions, run: str, names: Iterable[str] = ()) -> None:
    """Release the name that a job holds; otherwise another job takes it over later.

    If no task has reported a name, the driver checks the first names.
    """
    patience_ms = options.delivery.request_timeout_ms
    wanted = dict.fromkeys(names) or [job_name(options, number) for number in range(LOOKS_MAX)]
    with contextlib.suppress(LinkError, DeliveryError):
        for name in wanted:
            register = Register(cluster, name, patience_ms)
            record = register.read()
            if record is not None and record.run == run:
                abort_leftovers(cluster, options.properties, name, record.tickets)
                register.delete()
                return


def job_name(options: SinkOptions, number: int) -> str:
    """Return one of the names."""
    return f"{options.id_prefix}-job-{number}"


def is_free(record: Record, owner: str) -> bool:
    """Return whether the job in a record has ended."""
    if record.owner == owner and owner:
        return False
    return record.expires_ms < time.time_ns() // 1_000_000 or _driver_has_ended(record.owner, owner)


def _taken(
    cluster: Cluster, options: SinkOptions, attempt: Attempt, old: Record | None
) -> Record | None:
    if old is None:
        old = Record(run="")
    elif old.run == attempt.run or not is_free(old, attempt.owner):
        return None
    return taken_over(cluster, options, attempt, old, options.transaction_timeout_ms)


def _driver_has_ended(owner: str, mine: str) -> bool:
    """Return whether the driver of another application has certainly ended."""
    _, host, port = owner.split(" ") if owner.count(" ") == 2 else ("", "", "")
    if not port.isdigit():
        return False
    if mine.split(" ")[1:] == [host, port]:
        return True
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S).close()
    except (ConnectionRefusedError, socket.gaierror):
        return True
    except OSError:
        return False
    return False
