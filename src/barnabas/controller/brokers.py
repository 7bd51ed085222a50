"""Brokers present themselves, are let in, fenced, and struck off (BrokerRegistration, key 62).

Each registration gets an epoch that was never given out before: with it, everybody can tell the
process that is there from the one that was (KIP-631, KIP-903). A process registers under an
incarnation that it chose; asking again with the same one changes nothing.

What a process that starts anew does to partitions is what fencing its predecessor would have done:
it leaves each ISR in which others are, leads nothing, and comes back by catching up. That is right
even if nobody noticed that it was away, for it may be back with less.

With how much less? Under `flush=ack` everything that it acknowledged was synced, so after any
crash it is on its disk: the broker stays eligible, and stays in the ISR where it is the last.
Under `flush=interval` a crash may have taken the tail of what it acknowledged, and after a loss of
its disk all of it is gone, whatever the topic's policy. Then it is not known to have everything,
and must not be elected as if it had: `keeps_its_word`. Where it was the last in sync it stays
named, but with an empty disk it does not lead while other copies exist (`elections.wipe`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.controller.elections import broker_back, broker_lost
from barnabas.controller.topic_rules import TopicRules
from barnabas.metadata.image import BrokerImage, Image
from barnabas.metadata.records import (
    BrokerChanged,
    BrokerRegistered,
    BrokerStarted,
    BrokerUnregistered,
    MetadataRecord,
)
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest, Listener

CLIENT_LISTENER = "CLIENT"
PEER_LISTENER = "PEER"
NO_BROKER_EPOCH = -1


class Registration(NamedTuple):
    """The epoch of a process, and what makes it so; nothing where it was known."""

    broker_epoch: int
    records: list[MetadataRecord]


def register(
    image: Image,
    request: BrokerRegistrationRequest,
    defaults: Mapping[str, str],
    *,
    in_session: bool,
) -> Registration:
    """Take in a process; `in_session` says whether its broker was heard of a short while ago."""
    known = image.brokers.get(request.broker_id)
    _check_cluster(image, request)
    if known is not None and known.incarnation == request.incarnation_id.hex():
        return Registration(known.broker_epoch, [])
    if known is not None and in_session and not _is_over(known, request):
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"another process is broker {request.broker_id}; give this one another node id, "
            "or wait until the other has been silent for a session",
        )
    lost = broker_lost(
        image,
        request.broker_id,
        defaults,
        keeps_its_word=lambda rules: keeps_its_word(known, request, rules),
        lost_its_disk=known is not None and _directory(request) != known.directory,
    )
    registered = _registered(image, request)
    return Registration(registered.broker_epoch, [*lost, registered])


def keeps_its_word(
    known: BrokerImage | None, request: BrokerRegistrationRequest, rules: TopicRules
) -> bool:
    """Whether a process that starts has all that its predecessors acknowledged.

    A process that was registered and never let in may not even have heard of it. Then the last
    clean stop is that of the one before, and all is as it was left.
    """
    if known is None or _directory(request) != known.directory:
        return False
    clean_in = request.previous_broker_epoch
    stopped_cleanly = clean_in >= 0 and clean_in in (known.broker_epoch, known.let_in_epoch)
    return stopped_cleanly or rules.flush_on_ack


def register_alone(image: Image, request: BrokerRegistrationRequest) -> Registration | None:
    """Register the only broker there is and let it in, in three records; None where it is not.

    Nobody could take over from it, so nothing changes but that each partition it leads enters a
    new leader epoch. With thousands of partitions that is a matter of start-up time.
    """
    me = request.broker_id
    if any(other != me for other in image.brokers):
        return None
    for topic in image.topics.values():
        if any(p.leader != me or p.replicas != [me] for p in topic.partitions):
            return None
    _check_cluster(image, request)
    registered = _registered(image, request)
    let_in = BrokerChanged(
        node_id=me, broker_epoch=registered.broker_epoch, fenced=False, stopping=False
    )
    return Registration(registered.broker_epoch, [registered, let_in, BrokerStarted(node_id=me)])


def unregister(image: Image, node_id: int, defaults: Mapping[str, str]) -> list[MetadataRecord]:
    """Strike a broker off. Where it was the last in sync it stays named, without leading."""
    known = _known(image, node_id)
    gone = BrokerUnregistered(node_id=node_id, broker_epoch=known.broker_epoch)
    return [*broker_lost(image, node_id, defaults), gone]


def fence(image: Image, node_id: int, defaults: Mapping[str, str]) -> list[MetadataRecord]:
    """Shut a broker out: others take over what it led."""
    known = _known(image, node_id)
    fenced = _changed(known, fenced=True, stopping=known.stopping)
    return [fenced, *broker_lost(image, node_id, defaults)]


def unfence(image: Image, node_id: int, defaults: Mapping[str, str]) -> list[MetadataRecord]:
    """Let a broker in; it leads what has no leader and it may lead."""
    let_in = _changed(_known(image, node_id), fenced=False, stopping=False)
    return [let_in, *broker_back(image, node_id, defaults)]


def begin_stopping(image: Image, node_id: int, defaults: Mapping[str, str]) -> list[MetadataRecord]:
    """Move leaderships away from a broker that is about to stop."""
    known = _known(image, node_id)
    stopping = _changed(known, fenced=known.fenced, stopping=True)
    return [stopping, *broker_lost(image, node_id, defaults)]


def end_stopping(image: Image, node_id: int) -> list[MetadataRecord]:
    """Shut out a broker that leads nothing and stops now, so that clients turn to others."""
    return [_changed(_known(image, node_id), fenced=True, stopping=True)]


def _is_over(known: BrokerImage, request: BrokerRegistrationRequest) -> bool:
    """Whether the process that is registered has surely ended, though its session has not.

    It said that it stops, or its successor holds the lock on the same data folder.
    """
    return known.stopping or (bool(known.directory) and known.directory == _directory(request))


def _check_cluster(image: Image, request: BrokerRegistrationRequest) -> None:
    if request.cluster_id and image.cluster_id and request.cluster_id != image.cluster_id:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"broker {request.broker_id} belongs to cluster {request.cluster_id}, "
            f"this is {image.cluster_id}",
        )


def _registered(image: Image, request: BrokerRegistrationRequest) -> BrokerRegistered:
    client, peer = _listener(request, CLIENT_LISTENER), _listener(request, PEER_LISTENER)
    known = image.brokers.get(request.broker_id)
    return BrokerRegistered(
        node_id=request.broker_id,
        broker_epoch=image.last_broker_epoch + 1,
        incarnation=request.incarnation_id.hex(),
        host=client.host,
        port=client.port,
        peer_host=peer.host,
        peer_port=peer.port,
        rack=request.rack or None,
        directory=_directory(request),
        let_in_epoch=NO_BROKER_EPOCH if known is None else known.let_in_epoch,
    )


def _listener(request: BrokerRegistrationRequest, name: str) -> Listener:
    for listener in request.listeners:
        if listener.name == name:
            return listener
    raise ApiError(
        ErrorCode.INVALID_REGISTRATION, f"broker {request.broker_id} has no listener {name}"
    )


def _directory(request: BrokerRegistrationRequest) -> str:
    return request.log_dirs[0].hex() if request.log_dirs else ""


def _known(image: Image, node_id: int) -> BrokerImage:
    known = image.brokers.get(node_id)
    if known is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {node_id} is not registered")
    return known


def _changed(known: BrokerImage, *, fenced: bool, stopping: bool) -> BrokerChanged:
    return BrokerChanged(
        node_id=known.node_id, broker_epoch=known.broker_epoch, fenced=fenced, stopping=stopping
    )
