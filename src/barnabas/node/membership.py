"""A broker's life in its cluster, as the broker lives it.

    register  ->  fenced: catch up with the metadata  ->  active: serve, and say so now and then
                                                             |
    gone  <-  the controller has moved everything away  <-  stopping

A broker registers with the active controller under an incarnation that this process made up, and
gets an epoch: whatever carries an older one comes from an earlier process. It then sends heartbeats
until it ends. A controller that knows the epoch no more has the broker register again.

A planned stop asks the controller to move leaderships away first, so that clients hardly notice.
"""

from typing import TYPE_CHECKING

from barnabas.controller.brokers import CLIENT_LISTENER, PEER_LISTENER
from barnabas.effects import Notice
from barnabas.metadata.features import FEATURE, FIRST_LEVEL, INSTALL, LATEST_LEVEL
from barnabas.metadata.image import Image
from barnabas.model.errors import ErrorCode, TooOldError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer
from barnabas.node.peers import voter_addresses
from barnabas.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)

if TYPE_CHECKING:
    from barnabas.node.node import Node

NO_EPOCH = -1
RETRY_MS = 50
"""Until a broker is let in it asks often: everybody waits for it."""
PATIENCE_MS = 2_000
FAREWELLS_MAX = 20
"""So often a broker that stops tries to reach a controller."""
LANE = "heartbeat"
"""Of its own: a late answer gives up everything else on its lane."""


class Membership:
    """This broker among the others."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._incarnation = node.rng.randbytes(16)
        self.last_epoch = NO_EPOCH
        """The last in which this broker is known to have kept its word: that of the process before
        where it ended cleanly, until this one is registered."""
        self.broker_epoch = NO_EPOCH
        self.is_active = False
        """Whether the controller has let this broker in."""
        self._ready: Pending[None] = Pending()
        self._left: Pending[None] | None = None
        self._timer: Timer | None = None
        self._asking = False
        self._complained = False
        self._failures = 0

    def begin(self, previous_epoch: int | None) -> Pending[None]:
        """Register, and go on for as long as the process lives; answer once clients are served.

        The previous epoch is that of the process before, where it ended cleanly.
        """
        if previous_epoch is not None:
            self.last_epoch = previous_epoch
        self._turn()
        return self._ready

    def leave(self) -> Pending[None]:
        """Have everything moved to others; answer once that is done, or nobody can do it."""
        self._left = Pending()
        self._failures = 0
        if self.broker_epoch == NO_EPOCH:
            self._left.complete(None)
        elif not self._asking:
            self._turn()
        return self._left

    def _turn(self) -> None:
        """Say what there is to say now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._node.controller_id is None:
            self._lost()
        elif self.broker_epoch == NO_EPOCH:
            self._register(self._node.controller_id)
        else:
            self._tell(self._node.controller_id)

    def _lost(self) -> None:
        """Try again; where a broker wants to leave and nobody is left to tell, let it go."""
        self._failures += 1
        if self._left is not None and self._failures >= FAREWELLS_MAX:
            self._left.complete(None)
        self._again(RETRY_MS)

    def _again(self, delay_ms: int) -> None:
        self._asking = False
        if self._left is None or not self._left.done:
            self._timer = self._node.timers.after(delay_ms, self._turn)

    def registration(self) -> BrokerRegistrationRequest:
        """Return how this process presents itself."""
        node = self._node
        host, port = node.advertised
        peer = node.peer_address
        return BrokerRegistrationRequest(
            broker_id=node.node_id,
            cluster_id=node.image.cluster_id,
            incarnation_id=self._incarnation,
            listeners=[
                Listener(name=CLIENT_LISTENER, host=host, port=port),
                Listener(name=PEER_LISTENER, host=peer.host, port=peer.port),
            ],
            features=[
                Feature(
                    name=FEATURE,
                    min_supported_version=FIRST_LEVEL,
                    max_supported_version=LATEST_LEVEL,
                )
            ],
            rack=node.settings.broker.rack,
            log_dirs=[node.quorum.raft.directory],
            previous_broker_epoch=self.last_epoch,
        )

    def is_known(self, image: Image) -> bool:
        """Tell whether metadata has reached the registration of this process."""
        broker = image.brokers.get(self._node.node_id)
        return broker is not None and broker.incarnation == self._incarnation.hex()

    def _register(self, controller: NodeId) -> None:
        self._asking = True
        answer = self._node.peers.ask(
            controller, self.registration(), lane=LANE, timeout_ms=PATIENCE_MS
        )
        answer.when_done(self._registered, lambda _: self._again(RETRY_MS))

    def _registered(self, response: BrokerRegistrationResponse) -> None:
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise TooOldError(
                f"the controller does not register broker {self._node.node_id}, because its "
                f"release does not know the cluster's feature level; {INSTALL}"
            )
        if response.error_code:
            if response.error_code != ErrorCode.NOT_CONTROLLER:  # else it is about to change
                self._complain("the controller does not register this broker", response.error_code)
            self._again(RETRY_MS)
            return
        self._complained = False
        self.broker_epoch = response.broker_epoch
        self.last_epoch = response.broker_epoch  # should it have to register again
        self._again(1)

    def _tell(self, controller: NodeId) -> None:
        self._asking = True
        request = BrokerHeartbeatRequest(
            broker_id=self._node.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._node.quorum.offset,
            want_shut_down=self._left is not None,
        )
        # As long as that leaves time for another try: on a slow link, who hangs up after each
        # interval and connects anew never hears an answer.
        settings = self._node.settings.cluster
        timeout_ms = max(
            settings.broker_heartbeat_interval_ms, settings.broker_session_timeout_ms // 2
        )
        answer = self._node.peers.ask(controller, request, lane=LANE, timeout_ms=timeout_ms)
        answer.when_done(self._heard, lambda _: self._lost())

    def _heard(self, response: BrokerHeartbeatResponse) -> None:
        if response.error_code:
            if response.error_code in (
                ErrorCode.STALE_BROKER_EPOCH,
                ErrorCode.BROKER_ID_NOT_REGISTERED,
            ):
                self.broker_epoch = NO_EPOCH
                self.is_active = False
            self._again(RETRY_MS)
            return
        self._failures = 0
        self.is_active = not response.is_fenced
        if self._left is not None and response.should_shut_down:
            self._asking = False
            self._left.complete(None)
            return
        if self.is_active and not self._ready.done:
            self._tell_of_lost_vote()
            self._ready.complete(None)
        soon = response.is_fenced or self._left is not None
        interval_ms = self._node.settings.cluster.broker_heartbeat_interval_ms
        self._again(RETRY_MS if soon else interval_ms)

    def _tell_of_lost_vote(self) -> None:
        """Tell the operator where this broker is named as a voter, and has no vote.

        A vote belongs to a number and a disk: who comes back with an empty one follows the metadata
        log without a vote, and the next loss may leave no majority.
        """
        node, raft = self._node, self._node.quorum.raft
        named = voter_addresses(node.settings.cluster.voters)
        is_known = raft.voters.find(node.node_id) is not None
        if raft.voters.includes(raft.key) or not (is_known or node.node_id in named):
            return
        peer = node.peer_address
        promote = f"barnabas cluster promote {node.node_id} --peer-listen {peer.host}:{peer.port}"
        event = "this broker does not vote, though its settings name it as a voter"
        if is_known:
            event = "this broker does not vote: it came back with an empty disk"
            promote = f"barnabas cluster demote {node.node_id} && {promote}"
        facts = {"voters": [voter.id for voter in raft.voters], "to_vote_again": promote}
        node.outbox.append(Notice("warning", event, facts))

    def _complain(self, event: str, code: int) -> None:
        """Tell the operator once, not at every try."""
        if not self._complained:
            self._complained = True
            facts = {"problem": ErrorCode(code).name}
            self._node.outbox.append(Notice("error", event, facts))
