"""Tests requests between simulated brokers: order, timeouts, cut links and pauses."""

from collections.abc import Callable

from barnabas.effects import Address, Ask
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import encoder
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.sim.faults.cut_links import LinkFaults
from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.host import Host
from barnabas.sim.world import World

VERSION = 4
THERE = Address("b2", 9093)
TIMEOUT_MS = 1_000


class Pair:
    """Two brokers, the first of which sends requests to the second."""

    def __init__(self) -> None:
        self.world = World(1)
        self.link_faults = LinkFaults(self.world)
        neighbours: dict[Address, Host] = {}
        self.here, self.there = (
            Host(
                self.world, Faults(), name=name, link_faults=self.link_faults, neighbours=neighbours
            )
            for name in ("b1", "b2")
        )
        neighbours[THERE] = self.there
        self.here.start()
        self.there.start()
        self.heard: list[tuple[int, bool]] = []

    def ask(self, number: int, lane: str = "control") -> None:
        """Send a numbered request."""
        request = ApiVersionsRequest(client_software_name="a", client_software_version="b")
        body = encoder(ApiVersionsRequest, VERSION)(request)

        def done(answer: memoryview | None) -> None:
            self.heard.append((number, answer is not None))

        effect = Ask(THERE, lane, ApiKey.API_VERSIONS, VERSION, body, TIMEOUT_MS, done)
        node = self.here.node
        assert node is not None
        self.here.run_event(self.here.life, lambda: node.outbox.append(effect))

    def until(self, done: Callable[[], bool], within_ms: int = 2 * TIMEOUT_MS) -> None:
        """Run until a condition holds."""
        self.world.run_until(done, self.world.now_ms + within_ms, "the condition holds")

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass."""
        over: list[bool] = []
        self.world.after(duration_ms, lambda: over.append(True))
        self.until(lambda: bool(over), duration_ms)


def test_answers_of_a_lane_come_in_order() -> None:
    pair = Pair()
    for number in range(20):
        pair.ask(number)
    pair.until(lambda: len(pair.heard) == 20)
    assert pair.heard == [(number, True) for number in range(20)]


def test_there_is_no_response_from_a_broker_that_is_down() -> None:
    pair = Pair()
    pair.there.kill(power_cut=False)
    pair.ask(1)
    pair.until(lambda: bool(pair.heard), 100)
    assert pair.heard == [(1, False)]


def test_a_broker_that_dies_takes_its_answers_along() -> None:
    pair = Pair()
    pair.ask(1)
    pair.there.kill(power_cut=False)
    pair.there.start()
    pair.until(lambda: bool(pair.heard), 100)
    pair.ask(2)
    pair.until(lambda: len(pair.heard) == 2)
    assert pair.heard == [(1, False), (2, True)]


def test_a_cable_cut_either_way_is_noticed_by_waiting() -> None:
    for way in (("b1", "b2"), ("b2", "b1")):
        pair = Pair()
        pair.link_faults.cut(*way)
        pair.ask(1)
        pair.pass_time(TIMEOUT_MS - 1)
        assert pair.heard == []
        pair.until(lambda: bool(pair.heard))  # noqa: B023 - used within this turn
        assert pair.heard == [(1, False)]


def test_data_sent_over_a_cut_link_arrives_once_it_is_restored() -> None:
    pair = Pair()
    pair.link_faults.cut("b1", "b2")
    pair.ask(1)
    pair.ask(2)
    pair.pass_time(500)
    pair.link_faults.restore("b1", "b2")
    pair.until(lambda: len(pair.heard) == 2, 100)
    assert pair.heard == [(1, True), (2, True)]


def test_a_slow_cable_takes_longer() -> None:
    pair = Pair()
    pair.link_faults.slow("b2", "b1", 300)
    pair.ask(1)
    pair.pass_time(299)
    assert pair.heard == []
    pair.until(lambda: bool(pair.heard))
    assert pair.heard == [(1, True)]


def test_a_paused_broker_answers_when_it_resumes() -> None:
    pair = Pair()
    pair.there.pause()
    pair.ask(1)
    pair.pass_time(500)
    assert pair.heard == []
    pair.there.resume()
    pair.until(lambda: bool(pair.heard), 100)
    assert pair.heard == [(1, True)]


def test_a_paused_host_gets_its_responses_when_it_resumes() -> None:
    pair = Pair()
    pair.ask(1)
    pair.here.pause()
    pair.pass_time(500)
    assert pair.heard == []
    pair.here.resume()
    assert pair.heard == [(1, True)]


def test_a_silent_lane_does_not_hold_up_another() -> None:
    pair = Pair()
    pair.ask(1, "raft")
    pair.until(lambda: bool(pair.heard))
    pair.link_faults.cut("b1", "b2")
    pair.ask(2, "raft")
    pair.pass_time(TIMEOUT_MS // 2)
    pair.link_faults.restore("b1", "b2")
    pair.ask(3, "control")
    pair.until(lambda: len(pair.heard) == 3)
    assert sorted(pair.heard) == [(1, True), (2, True), (3, True)]
