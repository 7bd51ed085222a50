"""Tests offsets in a transaction whose coordinator is on another broker than the group's."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.node.coordination import coordinator_set
from barnabas.protocol.api_keys import ApiKey
from tests.support.talk.offset_requests import (
    Position,
    commit_request,
    committed,
    transactional_request,
)
from tests.support.talk.spread_transactions import (
    A0,
    A1,
    COORDINATOR,
    GROUPS,
    commit_code,
    spread,
    state,
)
from tests.support.talk.together import Together
from tests.support.talk.transaction_requests import add, add_offsets, end, initialize, send_end


@pytest.fixture
def brokers(tmp_path: Path) -> Together:
    return spread(tmp_path)


class TestOffsets:
    """TxnOffsetCommit at one broker, the transaction's coordinator at another."""

    def begin(self, brokers: Together, version: int) -> tuple[ProducerIdAndEpoch, Any]:
        brokers[3].ask(commit_request("g", {A0: 1}), 9)
        producer = initialize(brokers[1])
        if version < 5:
            assert add_offsets(brokers[1], producer, "g") == 0
        request = transactional_request("g", {A0: 5}, producer)
        return producer, brokers[3].send(request, version)

    @pytest.mark.parametrize("version", [3, 5])
    @pytest.mark.parametrize("commit", [True, False])
    def test_they_count_once_the_transaction_commits(
        self, brokers: Together, version: int, commit: bool
    ) -> None:
        producer, exchange = self.begin(brokers, version)
        assert commit_code(exchange) == 0
        assert committed(brokers[3], "g") == {A0: Position(1)}
        assert send_end(brokers[1], producer, commit=commit).answer.error_code == 0
        assert committed(brokers[3], "g") == {A0: Position(5 if commit else 1)}
        assert state(brokers) == ("CompleteCommit" if commit else "CompleteAbort")

    def test_one_that_was_not_added(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        add(brokers[1], producer, A0)
        exchange = brokers[3].send(transactional_request("g", {A0: 5}, producer), 4)
        assert commit_code(exchange) == ErrorCode.TRANSACTION_ABORTABLE

    def test_the_group_moves_before_the_end(self, brokers: Together) -> None:
        producer, _ = self.begin(brokers, 5)
        brokers.move(*GROUPS, to=2)
        end(brokers[1], producer)
        assert state(brokers) == "CompleteCommit"
        assert committed(brokers[2], "g") == {A0: Position(5)}

    def test_the_end_comes_while_the_group_is_read(
        self, brokers: Together, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        producer, _ = self.begin(brokers, 5)
        for offset in range(3):
            brokers[3].ask(commit_request("g", {A1: offset}), 9)
        monkeypatch.setattr(coordinator_set, "LOADED_AT_ONCE_BYTES", 1)
        brokers.move(*GROUPS, to=2)
        end(brokers[1], producer)
        assert state(brokers) == "CompleteCommit"
        brokers.pass_time(20)
        assert committed(brokers[2], "g") == {A0: Position(5), A1: Position(2)}

    def test_both_move_before_the_end(self, brokers: Together) -> None:
        producer, _ = self.begin(brokers, 5)
        brokers.hold(ApiKey.WRITE_TXN_MARKERS)
        end(brokers[1], producer)
        brokers.move(*GROUPS, to=2)
        brokers.move(*COORDINATOR, to=3)
        brokers.release()
        brokers.pass_time(50)
        assert state(brokers, 3) == "CompleteCommit"
        assert committed(brokers[2], "g") == {A0: Position(5)}
