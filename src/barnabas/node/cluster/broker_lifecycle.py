"""Registers this broker with the controller, sends its heartbeats, and announces its stop.

    register  ->  fenced: catch up with the metadata  ->  active: serve, and say so now and then
                                                             |
    gone  <-  the controller has moved everything away  <-  stopping

A broker registers with the active controller under an incarnation id that this process generated,
and gets an epoch: a request with an older epoch comes from an earlier process. It then sends
heartbeats until it ends. A controller that does not know the epoch makes the broker register again.

A planned stop asks the controller to move leaderships away first, so that clients hardly notice.
"""

from collections.abc import Mapping
from random import Random
from typing import Protocol

from barnabas.controller.brokers import CLIENT_LISTENER, PEER_LISTENER
from barnabas.effects import Address, Effect, Notice
from barnabas.metadata.features import FEATURE, FIRST_LEVEL, INSTALL, LATEST_LEVEL
from barnabas.metadata.image import Image
from barnabas.model.errors import ErrorCode, TooOldError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.settings import Settings
from barnabas.model.timers import Timer, Timers
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.node.cluster.metadata_quorum import Quorum
from barnabas.node.cluster.peer_requests import voter_addresses
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

NO_EPOCH = -1
RETRY_MS = 50
"""A broker that the controller has not unfenced yet asks often, since clients wait for it."""
PATIENCE_MS = 2_000
STOP_TRIES_MAX = 20
"""How often a stopping broker tries to reach a controller."""
LANE = "heartbeat"
"""A separate lane: a late answer closes the lane, with all other requests on it."""


class Listeners(Protocol):
    """Where this broker listens; known once its sockets are bound."""

    @property
    def advertised(self) -> tuple[str, int]:
        """Host and port for clients."""

    @property
    def endpoints(self) -> Mapping[str, tuple[str, int]]:
        """Host and port for clients of each listener, by name; empty for the only, usual one."""

    @property
    def peer_address(self) -> Address:
        """The address for other brokers."""


class Membership:
    """This broker's registration and heartbeats."""

    def __init__(
        self,
        settings: Settings,
        listeners: Listeners,
        quorum: Quorum,
        peers: BrokerRequests,
        timers: Timers,
        outbox: list[Effect],
        rng: Random,
    ) -> None:
        self._me = settings.broker.node_id
        self._settings = settings
        self._listeners = listeners
        self._quorum = quorum
        self._peers = peers
        self._timers = timers
        self._outbox = outbox
        self._incarnation = rng.randbytes(16)
        self.last_epoch = NO_EPOCH
        """The last broker epoch in which no acknowledged record was lost: that of the previous
        process if it ended cleanly, until this one is registered."""
        self.broker_epoch = NO_EPOCH
        self.is_active = False
        """Whether the controller has unfenced this broker."""
        self.answered_ms = 0
        """When the controller last answered a heartbeat."""
        self._ready: Pending[None] = Pending()
        self._left: Pending[None] | None = None
        self._timer: Timer | None = None
        self._asking = False
        self._has_reported = False
        self._failures = 0

    @property
    def is_leaving(self) -> bool:
        """Whether this broker is about to stop."""
        return self._left is not None

    @property
    def has_left(self) -> bool:
        """Whether the controller has moved everything away from it."""
        return self._left is not None and self._left.done

    def begin(self, previous_epoch: int | None) -> Pending[None]:
        """Register, and send heartbeats until the process ends; answer once clients are served.

        The previous epoch is that of the previous process, if it ended cleanly.
        """
        if previous_epoch is not None:
            self.last_epoch = previous_epoch
        self._turn()
        return self._ready

    def leave(self) -> Pending[None]:
        """Have the controller move leaderships away; answer once it has, or cannot be reached."""
        self._left = Pending()
        self._failures = 0
        if self.broker_epoch == NO_EPOCH:
            self._left.complete(None)
        elif not self._asking:
            self._turn()
        return self._left

    def _turn(self) -> None:
        """Register, or send a heartbeat."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._quorum.controller_id is None:
            self._lost()
        elif self.broker_epoch == NO_EPOCH:
            self._register(self._quorum.controller_id)
        else:
            self._send_heartbeat(self._quorum.controller_id)

    def _lost(self) -> None:
        """Try again; a stopping broker that reaches no controller stops without one."""
        self._failures += 1
        if self._left is not None and self._failures >= STOP_TRIES_MAX:
            self._left.complete(None)
        self._again(RETRY_MS)

    def _again(self, delay_ms: int) -> None:
        self._asking = False
        if self._left is None or not self._left.done:
            self._timer = self._timers.after(delay_ms, self._turn)

    def registration(self) -> BrokerRegistrationRequest:
        """Return the registration request of this process."""
        host, port = self._listeners.advertised
        peer = self._listeners.peer_address
        return BrokerRegistrationRequest(
            broker_id=self._me,
            cluster_id=self._quorum.image.cluster_id,
            incarnation_id=self._incarnation,
            listeners=[
                Listener(name=CLIENT_LISTENER, host=host, port=port),
                Listener(name=PEER_LISTENER, host=peer.host, port=peer.port),
                *(
                    Listener(name=name, host=host, port=port)
                    for name, (host, port) in self._listeners.endpoints.items()
                ),
            ],
            features=[
                Feature(
                    name=FEATURE,
                    min_supported_version=FIRST_LEVEL,
                    max_supported_version=LATEST_LEVEL,
                )
            ],
            rack=self._settings.broker.rack,
            log_dirs=[self._quorum.raft.identity.directory],
            previous_broker_epoch=self.last_epoch,
        )

    def is_known(self, image: Image) -> bool:
        """Tell whether metadata has reached the registration of this process."""
        broker = image.brokers.get(self._me)
        return broker is not None and broker.incarnation == self._incarnation.hex()

    def _register(self, controller: NodeId) -> None:
        self._asking = True
        answer = self._peers.ask(controller, self.registration(), lane=LANE, timeout_ms=PATIENCE_MS)
        answer.when_done(self._registered, lambda _: self._again(RETRY_MS))

    def _registered(self, response: BrokerRegistrationResponse) -> None:
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise TooOldError(
                f"the controller does not register broker {self._me}, because its "
                f"release does not know the cluster's feature level; {INSTALL}"
            )
        if response.error_code:
            if response.error_code != ErrorCode.NOT_CONTROLLER:  # else the controller changes
                self._report_once(
                    "the controller does not register this broker", response.error_code
                )
            self._again(RETRY_MS)
            return
        self._has_reported = False
        self.broker_epoch = response.broker_epoch
        self.last_epoch = response.broker_epoch  # in case it has to register again
        self._again(1)

    def _send_heartbeat(self, controller: NodeId) -> None:
        self._asking = True
        request = BrokerHeartbeatRequest(
            broker_id=self._me,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._quorum.offset,
            want_shut_down=self._left is not None,
        )
        # The timeout leaves time for another try. It is longer than the interval: on a slow link, a
        # broker that reconnects after each interval would never get an answer.
        settings = self._settings.cluster
        timeout_ms = max(
            settings.broker_heartbeat_interval_ms, settings.broker_session_timeout_ms // 2
        )
        answer = self._peers.ask(controller, request, lane=LANE, timeout_ms=timeout_ms)
        answer.when_done(self._heartbeat_answered, lambda _: self._lost())

    def _heartbeat_answered(self, response: BrokerHeartbeatResponse) -> None:
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
        self.answered_ms = self._timers.now_ms
        self.is_active = not response.is_fenced
        if self._left is not None and response.should_shut_down:
            self._asking = False
            self._left.complete(None)
            return
        if self.is_active and not self._ready.done:
            self._warn_of_lost_vote()
            self._ready.complete(None)
        soon = response.is_fenced or self._left is not None
        interval_ms = self._settings.cluster.broker_heartbeat_interval_ms
        self._again(RETRY_MS if soon else interval_ms)

    def _warn_of_lost_vote(self) -> None:
        """Warn the operator if the settings name this broker as a voter and it has no vote.

        A vote belongs to a broker id and a disk. A broker that comes back with an empty disk
        follows the metadata log without a vote, and the next loss may leave no majority.
        """
        raft = self._quorum.raft
        named = voter_addresses(self._settings.cluster.voters)
        is_known = raft.voters.find(self._me) is not None
        if raft.voters.includes(raft.identity.key) or not (is_known or self._me in named):
            return
        peer = self._listeners.peer_address
        promote = f"barnabas cluster promote {self._me} --peer-listen {peer.host}:{peer.port}"
        event = "this broker does not vote, though its settings name it as a voter"
        if is_known:
            event = "this broker does not vote: it came back with an empty disk"
            promote = f"barnabas cluster demote {self._me} && {promote}"
        facts = {"voters": [voter.id for voter in raft.voters], "to_vote_again": promote}
        self._outbox.append(Notice("warning", event, facts))

    def _report_once(self, event: str, code: int) -> None:
        """Report a problem to the operator once, not at every try."""
        if not self._has_reported:
            self._has_reported = True
            facts = {"problem": ErrorCode(code).name}
            self._outbox.append(Notice("error", event, facts))
