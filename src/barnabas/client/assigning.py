"""How partitions come into a confluent-kafka consumer, and come in again.

A group's members get partitions in a callback. There we ask for the committed offsets ourselves:
a partition without one begins where `start` says, while librdkafka's own answer to a missing
offset, `auto.offset.reset`, is kept for offsets that are out of range. The partitions are assigned
before the program's callback runs, so that it may seek in them.

librdkafka stops a partition whose offset is out of range, and a stopped one takes no seek: it must
be taken out of the assignment and put in again. Groups of the eager protocol can only replace their
whole assignment; then the others go on from where they are.
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
    """Return confluent-kafka's name of a partition."""
    return RawPartition(place.topic, place.partition, offset)


def adopt(
    kafka: confluent_kafka.Consumer, partitions: list[RawPartition], start: Place | None
) -> None:
    """Take what the group gave, each from its committed offset or else from the start."""
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
    """Read a stopped partition on from its new offset. `done` is what could be committed."""
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
    """Tell whether the call did not fit the state that the consumer, or a partition, is in."""
    return bool(exception.args[0].code() == KafkaError._STATE)


def _placed(
    kafka: confluent_kafka.Consumer, partitions: list[RawPartition], start: Place
) -> list[RawPartition]:
    try:
        found: list[RawPartition] = kafka.committed(partitions, timeout=LOOKUP_TIMEOUT_S)
        fresh = [each for each in found if each.error is None and each.offset < 0]
        begun = _looked_up(kafka, fresh, start) if fresh else {}
    except KafkaException:
        # librdkafka asks again by itself, and reports each partition that has no offset.
        log.warning("the committed offsets of a group could not be read", exc_info=True)
        return partitions
    for each in fresh:
        each.offset = begun.get(_plain(each), LOGICAL[start])
    return [each if each.error is None else native(_plain(each)) for each in found]


def _looked_up(
    kafka: confluent_kafka.Consumer, partitions: list[RawPartition], start: Place
) -> dict[TopicPartition, int]:
    """Return the first or the next offset of partitions, asked for in one request a broker.

    librdkafka would look them up in the background, and undo a seek that is made meanwhile.
    """
    # To ListOffsets, the timestamps -2 and -1 mean what these offsets mean to librdkafka.
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
    # What was stored for the next commit was dropped with the old assignment.
    again = [native(_plain(each), done[_plain(each)]) for each in others if _plain(each) in done]
    if again:
        kafka.store_offsets(offsets=again)


def _plain(partition: RawPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)
