"""Assign partitions to a confluent-kafka consumer, and assign stopped partitions again.

Group members get partitions in a callback. There we request the committed offsets ourselves: a
partition without one begins at `start`, while librdkafka's `auto.offset.reset` is used only for
offsets that are out of range. The partitions are assigned before the program's callback runs, so
that it can seek in them.

librdkafka stops a partition whose offset is out of range, and a stopped partition cannot seek: it
must be removed from the assignment and added again. Groups with the eager protocol can only replace
their whole assignment; then the other partitions continue at their positions.
"""

from collections.abc import Iterable, Mapping

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as RawPartition

from barnabas.client.arguments import Place
from barnabas.logs import get
from barnabas.model.ids import TopicPartition

LOOKUP_TIMEOUT_S = 10.0
LOGICAL: dict[Place, int] = {
    "beginning": confluent_kafka.OFFSET_BEGINNING,
    "end": confluent_kafka.OFFSET_END,
}

log = get("barnabas.client")


def native(place: TopicPartition, offset: int = confluent_kafka.OFFSET_INVALID) -> RawPartition:
    """Return a partition as a confluent-kafka object."""
    return RawPartition(place.topic, place.partition, offset)


def adopt(
    kafka: confluent_kafka.Consumer, partitions: list[RawPartition], start: Place | None
) -> None:
    """Assign the group's partitions, each at its committed offset or else at the start."""
    given = partitions if start is None else _placed(kafka, partitions, start)
    try:
        kafka.incremental_assign(given)
    except KafkaException as exception:
        if not is_state(exception):
            raise
        kafka.assign(given)  # the eager protocol


def readmit(
    kafka: confluent_kafka.Consumer,
    stopped: RawPartition,
    *,
    paused: Iterable[TopicPartition],
    done: Mapping[TopicPartition, int],
) -> None:
    """Continue a stopped partition at its new offset. `done` has the offsets to commit."""
    try:
        kafka.incremental_unassign([stopped])
        kafka.incremental_assign([stopped])
    except KafkaException as exception:
        if not is_state(exception):
            raise
        _replace_all(kafka, stopped, done)
    held = [native(place) for place in paused]
    if held:
        kafka.pause(held)


def is_state(exception: KafkaException) -> bool:
    """Return whether the call failed because of the state of the consumer or a partition."""
    return bool(exception.args[0].code() == KafkaError._STATE)


def _placed(
    kafka: confluent_kafka.Consumer, partitions: list[RawPartition], start: Place
) -> list[RawPartition]:
    try:
        found: list[RawPartition] = kafka.committed(partitions, timeout=LOOKUP_TIMEOUT_S)
        fresh = [each for each in found if each.error is None and each.offset < 0]
        begun = _looked_up(kafka, fresh, start) if fresh else {}
    except KafkaException:
        # librdkafka retries, and reports each partition without an offset.
        log.warning("the committed offsets of a group could not be read", exc_info=True)
        return partitions
    for each in fresh:
        each.offset = begun.get(_plain(each), LOGICAL[start])
    return [each if each.error is None else native(_plain(each)) for each in found]


def _looked_up(
    kafka: confluent_kafka.Consumer, partitions: list[RawPartition], start: Place
) -> dict[TopicPartition, int]:
    """Return the first or the next offset of partitions, with one request per broker.

    librdkafka would look them up in the background, and undo a seek in the meantime.
    """
    # ListOffsets uses the timestamps -2 and -1 for these offsets of librdkafka.
    asked = [native(_plain(each), LOGICAL[start]) for each in partitions]
    found = kafka.offsets_for_times(asked, timeout=LOOKUP_TIMEOUT_S)
    return {_plain(each): each.offset for each in found if each.error is None and each.offset >= 0}


def _replace_all(
    kafka: confluent_kafka.Consumer, stopped: RawPartition, done: Mapping[TopicPartition, int]
) -> None:
    here = _plain(stopped)
    others = [each for each in kafka.position(kafka.assignment()) if _plain(each) != here]
    for each in others:
        if each.offset < 0:
            each.offset = confluent_kafka.OFFSET_STORED
    kafka.assign([*others, stopped])
    # The old assignment's stored offsets for the next commit were dropped.
    again = [native(_plain(each), done[_plain(each)]) for each in others if _plain(each) in done]
    if again:
        kafka.store_offsets(offsets=again)


def _plain(partition: RawPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)
