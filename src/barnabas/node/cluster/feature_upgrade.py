"""Raising the cluster's feature level, on the active controller.

Which levels a broker knows is not in the metadata: at level 1 there is no record that could say so
and that a broker of the first release could read. So the controller asks every registered broker
and every voter (ApiVersions) before it raises the level. While it waits, brokers may register and
voters change; then the answers are void and the operator asks again. A broker that registers
after the level was raised is checked by its registration.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from barnabas.controller.feature_decisions import Levels, check_levels, levels_of, wanted_level
from barnabas.effects import Address, Effect, Notice
from barnabas.metadata.features import FIRST_LEVEL, LATEST_LEVEL
from barnabas.metadata.metadata_records import FeatureLevelChanged, MetadataRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers
from barnabas.model.version import __version__
from barnabas.node.cluster.metadata_quorum import Quorum
from barnabas.node.cluster.peer_requests import Peers
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest

LANE = "levels"
TIMEOUT_MS = 3_000
STOPPED = "is not running"
SILENT = "does not answer"

Electorate = tuple[frozenset[tuple[int, int]], frozenset[int]]
"""Brokers by id and epoch, and voters: those that must know a level."""
Known = Mapping[int, Levels | str]
"""The levels that a node knows, or why it does not say."""


class Upgrading:
    """The controller's questions to all nodes, and its decision."""

    def __init__(
        self,
        me: NodeId,
        quorum: Quorum,
        peers: Peers,
        timers: Timers,
        outbox: list[Effect],
        commit: Callable[[Sequence[MetadataRecord], int], Pending[None]],
    ) -> None:
        self._me = me
        self._quorum = quorum
        self._peers = peers
        self._timers = timers
        self._outbox = outbox
        self._commit = commit

    def update(self, request: UpdateFeaturesRequest) -> Pending[None]:
        """Raise the feature level, or only check whether it may be.

        The answer comes once that is committed; it fails with the `ApiError` that says why not.
        """
        draft = self._quorum.require_draft()
        level = wanted_level(draft, request.feature_updates)
        if level == draft.feature_level:
            return self._commit((), self._timers.wall_ms)
        answer: Pending[None] = Pending()
        asked = self._electorate()
        self._survey(partial(self._decide, level, asked, request, answer))
        return answer

    def _electorate(self) -> Electorate:
        brokers = self._quorum.require_draft().brokers.values()
        voters = self._quorum.raft.voters
        return (
            frozenset((each.node_id, each.broker_epoch) for each in brokers),
            frozenset(int(voter.id) for voter in voters),
        )

    def _survey(self, done: Callable[[Known], None]) -> None:
        """Ask every registered broker and every voter which levels it knows."""
        quorum, peers = self._quorum, self._peers
        addresses: dict[int, Address | None] = {
            int(voter.id): peers.address_of(NodeId(voter.id)) for voter in quorum.raft.voters
        }
        known: dict[int, Levels | str] = {}
        for broker in quorum.require_draft().brokers.values():
            addresses[broker.node_id] = peers.address_of(NodeId(broker.node_id))
            if broker.fenced and broker.node_id != self._me:
                known[broker.node_id] = STOPPED
        known[self._me] = Levels(FIRST_LEVEL, LATEST_LEVEL)
        waiting = set(addresses) - set(known)

        def told(number: int, answer: Levels | str) -> None:
            known[number] = answer
            waiting.discard(number)
            if not waiting:
                done(dict(sorted(known.items())))

        if not waiting:
            done(dict(sorted(known.items())))
            return
        for number in sorted(waiting):
            self._ask(addresses[number], partial(told, number))

    def _ask(self, address: Address | None, told: Callable[[Levels | str], None]) -> None:
        if address is None:
            told(SILENT)
            return
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__
        )
        asked = self._peers.ask_at(address, request, lane=LANE, timeout_ms=TIMEOUT_MS)

        def heard(answer: ApiVersionsResponse) -> None:
            told(SILENT if answer.error_code else levels_of(answer))

        asked.when_done(heard, lambda _: told(SILENT))

    def _decide(
        self,
        level: int,
        asked: Electorate,
        request: UpdateFeaturesRequest,
        answer: Pending[None],
        known: Known,
    ) -> None:
        try:
            before = (
                self._quorum.require_draft().feature_level
            )  # raises if another node has taken over
            check_levels(level, known)
            self._check_unchanged(level, asked)
            records: list[MetadataRecord] = []
            if not request.validate_only:
                records.append(FeatureLevelChanged(level=level))
                facts = {"level": level, "before": before}
                self._outbox.append(Notice("info", "the feature level is raised", facts))
            self._commit(records, self._timers.wall_ms).when_done(answer.complete, answer.fail)
        except ApiError as error:
            answer.fail(error)

    def _check_unchanged(self, level: int, asked: Electorate) -> None:
        """Refuse to decide if the nodes have changed since they were asked."""
        if self._electorate() != asked or self._quorum.require_draft().feature_level >= level:
            raise ApiError(
                ErrorCode.FEATURE_UPDATE_FAILED,
                "brokers registered or voters changed meanwhile; ask again",
            )
