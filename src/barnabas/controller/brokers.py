"""Registers, fences, unfences and unregisters brokers (BrokerRegistration, key 62).

Each registration gets a new broker epoch, which distinguishes the current process of a broker from
earlier ones (KIP-631, KIP-903). A process chooses an incarnation id; registering again with the
same id changes nothing.

The restart of a process affects partitions as fencing its predecessor does: the broker leaves each
ISR that has other members, leads nothing, and comes back by catching up. That is necessary even if
its absence went unnoticed, because it may have lost records.

What it may have lost depends on the topic. Under `flush=ack` it synced all records before it
acknowledged them, so its disk has them after any crash: the broker stays eligible, and stays in the
ISR if it is the last member. Under `flush=interval` a crash may have lost the last acknowledged
records, and a lost disk loses all of them under any policy. Then the broker must not be elected as
if it had everything (`has_all_acknowledged`). If it was the last member of the ISR it stays in it,
but with an empty disk it does not lead while other replicas exist (`elections.mark_disk_lost`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.controller.elections import broker_lost, broker_unfenced
from barnabas.controller.topic_rules import TopicRules
from barnabas.metadata.features import SECURITY_LEVEL
from barnabas.metadata.image import BrokerImage, Image
from barnabas.metadata.metadata_records import (
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
UNNAMED_LISTENERS = 2
"""A registration begins with these two. The named listeners for clients follow, if a broker has
others than the one called PLAINTEXT."""
NO_BROKER_EPOCH = -1


class Registration(NamedTuple):
    """The epoch of a process, and the records that register it; none if it was registered."""

    broker_epoch: int
    records: list[MetadataRecord]


def register(
    image: Image,
    request: BrokerRegistrationRequest,
    defaults: Mapping[str, str],
    *,
    in_session: bool,
) -> Registration:
    """Register a process; `in_session` says whether its broker has sent a recent heartbeat."""
    known = image.brokers.get(request.broker_id)
    _check_cluster(image, request)
    if known is not None and known.incarnation == request.incarnation_id.hex():
        return Registration(known.broker_epoch, [])
    if known is not None and in_session and not _is_over(known, request):
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"another process runs as broker {request.broker_id}; give this one another node id, "
            "or stop the other and wait until its session ends",
        )
    lost = broker_lost(
        image,
        request.broker_id,
        defaults,
        has_all_acknowledged=lambda rules: has_all_acknowledged(known, request, rules),
        lost_its_disk=known is not None and _directory(request) != known.directory,
    )
    registered = _registered(image, request)
    return Registration(registered.broker_epoch, [*lost, registered])


def has_all_acknowledged(
    known: BrokerImage | None, request: BrokerRegistrationRequest, rules: TopicRules
) -> bool:
    """Whether a starting process has all records that its predecessors acknowledged.

    A process that was registered and never unfenced has acknowledged nothing. Then the last clean
    stop is that of the process before it.
    """
    if known is None or _directory(request) != known.directory:
        return False
    clean_in = request.previous_broker_epoch
    stopped_cleanly = clean_in >= 0 and clean_in in (known.broker_epoch, known.let_in_epoch)
    return stopped_cleanly or rules.flush_on_ack


def register_alone(image: Image, request: BrokerRegistrationRequest) -> Registration | None:
    """Register and unfence the only broker in three records; None if there are others.

    No other broker can take over its partitions, so only their leader epochs change. One record
    does that for all of them, which keeps the start fast with thousands of partitions.
    """
    me = request.broker_id
    if any(other != me for other in image.brokers):
        return None
    for topic in image.topics.values():
        if any(p.leader != me or p.replicas != [me] for p in topic.partitions):
            return None
    _check_cluster(image, request)
    registered = _registered(image, request)
    unfenced = BrokerChanged(
        node_id=me, broker_epoch=registered.broker_epoch, fenced=False, stopping=False
    )
    return Registration(registered.broker_epoch, [registered, unfenced, BrokerStarted(node_id=me)])


def unregister(image: Image, node_id: int, defaults: Mapping[str, str]) -> list[MetadataRecord]:
    """Unregister a broker. It stays in an ISR of which it is the last member, without leading."""
    known = _known(image, node_id)
    gone = BrokerUnregistered(node_id=node_id, broker_epoch=known.broker_epoch)
    return [*broker_lost(image, node_id, defaults), gone]


def fence(image: Image, node_id: int, defaults: Mapping[str, str]) -> list[MetadataRecord]:
    """Fence a broker: other brokers take over the partitions that it led."""
    known = _known(image, node_id)
    fenced = _changed(known, fenced=True, stopping=known.stopping)
    return [fenced, *broker_lost(image, node_id, defaults)]


def unfence(image: Image, node_id: int, defaults: Mapping[str, str]) -> list[MetadataRecord]:
    """Unfence a broker; it becomes leader of the partitions without one, if it is eligible."""
    unfenced = _changed(_known(image, node_id), fenced=False, stopping=False)
    return [unfenced, *broker_unfenced(image, node_id, defaults)]


def start_shutdown(image: Image, node_id: int, defaults: Mapping[str, str]) -> list[MetadataRecord]:
    """Move leadership away from a broker that is about to stop."""
    known = _known(image, node_id)
    stopping = _changed(known, fenced=known.fenced, stopping=True)
    return [stopping, *broker_lost(image, node_id, defaults)]


def finish_shutdown(image: Image, node_id: int) -> list[MetadataRecord]:
    """Fence a broker that leads nothing and stops now, so that clients use other brokers."""
    return [_changed(_known(image, node_id), fenced=True, stopping=True)]


def _is_over(known: BrokerImage, request: BrokerRegistrationRequest) -> bool:
    """Whether the registered process has certainly ended, although its session has not.

    It announced its stop, or its successor holds the lock on the same data folder.
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
        endpoints=_endpoints(image, request),
    )


def _endpoints(image: Image, request: BrokerRegistrationRequest) -> dict[str, tuple[str, int]]:
    """Return the named listeners, which follow the first two; level 1 does not know them."""
    if image.feature_level < SECURITY_LEVEL:
        return {}
    return {each.name: (each.host, each.port) for each in request.listeners[UNNAMED_LISTENERS:]}


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
