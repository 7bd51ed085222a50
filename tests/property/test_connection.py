"""Tests that a connection gives the same results for any cut of its bytes and any limits.

The reference is a client that waits for each response, on a connection without limits. The other
client sends everything at once, in any pieces, with limits of two responses, a hundred bytes or one
request per event, a socket that has no room, slow syncs, and a quota that pauses it. A quota also
leaves records out of fetches, from some batch on, and has no other effect.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.sim.edge import Limits
from tests.support.examples import LONG
from tests.support.talk.one_connection import Asked, OneConnection, decoded
from tests.support.talk.requests import batch, fetch_request

EXAMPLES = 2000 if LONG else 100
TOPICS = ["plain", "other"]
OLD = "old"
IDLE = "idle"
NO_LIMITS = Limits(
    receive_bytes=256 * 1024, queued_bytes=1 << 30, queued_answers=1 << 30, frames_per_event=1 << 30
)


def produce(topic: str, content: bytes, acks: int, version: int) -> Asked:
    data = PartitionProduceData(index=0, records=content)
    named = TopicProduceData(name=topic, partition_data=[data])
    request = ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[named])
    return Asked(request, version, is_answered=acks != 0)


def damaged(content: bytearray) -> bytes:
    content[-1] ^= 1
    return bytes(content)


@st.composite
def produces(draw: st.DrawFn) -> Asked:
    # The last one is unknown: its error is a response, too, unless the client expects none.
    topic = draw(st.sampled_from([*TOPICS, *TOPICS, *TOPICS, "unknown"]))
    value = bytes(draw(st.sampled_from([0, 1, 40, 400])))
    content = bytes(batch(draw(st.integers(1, 3)), value=value, start_ms=1))
    acks = draw(st.sampled_from([-1, -1, 1, 0]))
    if topic == "unknown" and acks == 0:
        acks = 1  # without a response, an error closes the connection
    if acks and draw(st.integers(0, 9)) == 0:
        content = damaged(bytearray(content))
    return produce(topic, content, acks, draw(st.sampled_from([3, 9, 12])))


FETCH_OLD = fetch_request(OLD, max_wait_ms=0, max_bytes=2_000)
FETCH_IDLE = fetch_request(IDLE, max_wait_ms=700, min_bytes=1)
METADATA = MetadataRequest(topics=[MetadataRequestTopic(name=OLD)])
others = st.sampled_from(
    [
        Asked(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3),
        Asked(METADATA, 9),
        Asked(FETCH_OLD, 11),
        Asked(FETCH_IDLE, 11),
    ]
)
requests = st.lists(st.one_of(produces(), produces(), produces(), others), min_size=1, max_size=20)
limits = st.builds(
    Limits,
    receive_bytes=st.sampled_from([16, 300, 256 * 1024]),
    queued_bytes=st.sampled_from([100, 1 << 20]),
    queued_answers=st.sampled_from([0, 2, 1000]),
    frames_per_event=st.sampled_from([1, 3, 1000]),
    buffered_bytes=st.sampled_from([0, 0, 100, 2_000]),
)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(1, 1_500)),
        st.tuples(st.sampled_from(["turn", "release"]), st.just(0)),
        st.tuples(st.just("pass_time"), st.integers(1, 900)),
    ),
    max_size=50,
)
circumstances = st.fixed_dictionaries(
    {
        "limits": limits,
        "quota": st.sampled_from([0, 0, 200]),
        "rooms": st.lists(st.sampled_from([0, 1, 5, 60, 1 << 20]), max_size=20),
        "hold_syncs": st.booleans(),
    }
)


def prepared(**circumstances: Any) -> OneConnection:
    one = OneConnection(**circumstances)
    hold, one.edge.hold_syncs = one.edge.hold_syncs, False
    for number, topic in enumerate([*TOPICS, OLD, IDLE], 1):
        one.edge.create(topic, number=number)
    for _ in range(3):
        one.arrive(produce(OLD, bytes(batch(2, value=bytes(300), start_ms=1)), 0, 9).frame(0))
    one.finish(0)
    one.pass_time(60_000)
    one.edge.hold_syncs = hold
    assert one.problems == []
    return one


def expected(asked: list[Asked]) -> OneConnection:
    """Send one request after the other, without limits."""
    one = prepared(limits=NO_LIMITS)
    answers = 0
    for number, each in enumerate(asked):
        answers += each.is_answered
        one.arrive(each.frame(number))
        one.finish(answers)
    return one


def play(one: OneConnection, stream: bytes, script: list[tuple[str, int]]) -> bytes:
    """Run a script; return the requests that have not arrived by then."""
    for name, amount in script:
        if name == "arrive":
            one.arrive(stream[:amount])
            stream = stream[amount:]
        elif name == "pass_time":
            one.pass_time(amount)
        else:
            act: Callable[[], None] = getattr(one, name)
            act()
    return stream


def restore(answers: list[Message], wanted: list[Message]) -> None:
    """Put back what a quota leaves out of fetches: the whole response, or its last batches."""
    for answer, other in zip(answers, wanted, strict=True):
        if not isinstance(answer, FetchResponse):
            continue
        assert isinstance(other, FetchResponse)
        if not answer.responses:
            answer.responses = other.responses
            continue
        ((part,), (whole,)) = [
            [p for t in a.responses for p in t.partitions] for a in (answer, other)
        ]
        if part.records:
            assert bytes(whole.records or b"").startswith(part.records)
            part.records = whole.records


few = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@few
@given(requests, circumstances, actions)
def test_cuts_and_limits_change_neither_answers_nor_log(
    asked: list[Asked], circumstances: dict[str, Any], script: list[tuple[str, int]]
) -> None:
    reference = expected(asked)
    one = prepared(**circumstances)
    stream = b"".join(each.frame(number) for number, each in enumerate(asked))
    one.arrive(play(one, stream, script))
    one.finish(sum(each.is_answered for each in asked))
    # Requests without a response may still wait because of a pause.
    while one.logs(TOPICS) != reference.logs(TOPICS) and not one.connection.closed:
        before = one.logs(TOPICS)
        for _ in range(60):
            one.pass_time()
            one.turn()
        if one.logs(TOPICS) == before:
            break
    assert one.problems == []
    assert one.logs(TOPICS) == reference.logs(TOPICS)
    assert len(one.answers) == sum(each.is_answered for each in asked)
    answers, expected_answers = decoded(asked, one.answers), decoded(asked, reference.answers)
    if circumstances["quota"]:
        restore(answers, expected_answers)
    assert answers == expected_answers


@few
@given(requests, circumstances, actions, st.integers(0, 2_000))
def test_a_client_that_hangs_up_leaves_whole_requests_in_the_log_and_no_half_ones(
    asked: list[Asked], circumstances: dict[str, Any], script: list[tuple[str, int]], missing: int
) -> None:
    reference = expected(asked)
    one = prepared(**circumstances)
    stream = b"".join(each.frame(number) for number, each in enumerate(asked))
    rest = play(one, stream[: max(0, len(stream) - missing)], script)
    one.arrive(rest)
    one.end()
    for _ in range(100):
        one.turn()
        one.pass_time()
        one.release()
    assert one.connection.closed
    assert one.problems == []
    for topic, content in one.logs(TOPICS).items():
        assert reference.logs(TOPICS)[topic].startswith(content)
    answered = decoded(asked, one.answers)
    wanted = decoded(asked, reference.answers)[: len(answered)]
    if circumstances["quota"]:
        restore(answered, wanted)
    assert answered == wanted
