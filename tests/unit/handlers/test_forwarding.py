"""Tests requests for the controller that a client sends to another broker."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.effects import Address, Ask
from barnabas.handlers.context import RequestContext
from barnabas.handlers.forwarding import refuse
from barnabas.handlers.registry import FORWARDED, SERVED, dispatch
from barnabas.model.callers import CLIENT_LISTENER, Caller, Listener, Principal
from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, KEYS, request_class, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.envelopes import (
    read_envelope,
    read_principal,
    write_envelope,
    write_principal,
)
from barnabas.protocol.headers import RequestHeader, response_header
from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_configs, incremental_alter_configs, request_header
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest
from tests.support.talk.dialogue import CLIENT, PEER, Dialogue
from tests.support.talk.rows import with_handler
from tests.support.talk.together import Together

BROKER_ID, CONTROLLER_ID = NodeId(1), NodeId(2)
CONTROLLER_AT = Address("controller", 9192)
TOPIC, BROKER = 2, 4
NUMBER = 77


class Two:
    """A broker and its controller; a test delivers the messages between them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.controller_id: NodeId | None = CONTROLLER_ID
        self.broker = Dialogue(folder / "1", {"broker.id": BROKER_ID})
        self.controller = Dialogue(folder / "2", {"broker.id": CONTROLLER_ID})
        leads = property(lambda node: node.node_id == self.controller_id)
        monkeypatch.setattr(Node, "is_controller", leads)
        monkeypatch.setattr(Node, "controller_id", property(lambda _: self.controller_id))
        monkeypatch.setattr(self.broker.node.peers, "address_of", lambda _: CONTROLLER_AT)

    @property
    def asked(self) -> Ask:
        """The requests of the broker to the controller."""
        (ask,) = self.broker.asked
        return ask

    def deliver_request(self, *, in_envelope: bool = True) -> None:
        """Deliver a request to the controller, and its response back."""
        ask = self.asked.enveloped() if in_envelope else self.asked
        assert ask.address == CONTROLLER_AT
        heard: list[list[Chunk]] = []
        answer, _ = dispatch(self.controller.node, framed(ask), PEER, 0)
        if isinstance(answer, Pending):
            answer.when_done(heard.append)
            self.controller.settle()
        elif answer is not None:
            heard.append(answer)
        content = b"".join(bytes(chunk) for chunk in heard[0])  # type: ignore[arg-type]
        head = response_header(ask.api_key, ask.api_version, NUMBER)
        ask.done(memoryview(content.removeprefix(head)))


def framed(ask: Ask) -> memoryview:
    """Put a header before a request, as the edge does."""
    header = request_header.RequestHeader(
        request_api_key=ask.api_key,
        request_api_version=ask.api_version,
        correlation_id=NUMBER,
        client_id="broker-1",
    )
    flexible = ask.api_version >= APIS[ask.api_key].flexible_from
    head = encoder(request_header.RequestHeader, 2 if flexible else 1)(header)
    return memoryview(bytearray(head + ask.body))


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Two:
    return Two(tmp_path, monkeypatch)


def create(*names: str) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics)


def set_configs(kind: int, name: str) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    change = incremental_alter_configs.AlterableConfig(name="retention.ms", value="5")
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[change]
    )
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])


# --- delivery of requests and responses ---


@pytest.mark.parametrize("in_envelope", [True, False])
@pytest.mark.parametrize("version", range(2, 8))
def test_the_controller_decides_and_the_client_gets_the_response(
    two: Two, version: int, *, in_envelope: bool
) -> None:
    exchange = two.broker.send(create("a"), version)
    assert exchange.waiting
    assert (two.asked.api_key, two.asked.api_version) == (19, version)
    two.deliver_request(in_envelope=in_envelope)
    (topic,) = exchange.answer.topics  # under the client's own correlation id
    assert (topic.name, topic.error_code) == ("a", 0)
    assert "a" in two.controller.node.image.topics
    assert "a" not in two.broker.node.image.topics


def test_a_refusal_of_the_controllers_comes_back_as_it_is(two: Two) -> None:
    exchange = two.broker.send(create("a", "..", "a"))
    two.deliver_request()
    assert [topic.error_code for topic in exchange.answer.topics] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUEST,
    ]


def test_configs_of_topics_are_the_controllers(two: Two) -> None:
    two.controller.ask(create("a"))
    exchange = two.broker.send(set_configs(TOPIC, "a"))
    two.deliver_request()
    assert [answer.error_code for answer in exchange.answer.responses] == [0]
    assert two.controller.node.image.topics["a"].config == {"retention.ms": "5"}


def test_configs_of_a_broker_are_changed_by_the_controller_and_described_by_the_broker(
    two: Two,
) -> None:
    two.broker.send(set_configs(BROKER, "1"))
    assert len(two.broker.asked) == 1
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1")
    answer = two.broker.ask(DescribeConfigsRequest(resources=[resource]))
    assert answer.results[0].error_code == 0
    assert len(two.broker.asked) == 1


def test_the_controller_itself_passes_nothing_on(two: Two) -> None:
    assert two.controller.ask(create("a")).topics[0].error_code == 0
    assert not two.controller.asked


def test_slow_questions_have_lanes_of_their_own(two: Two) -> None:
    two.broker.send(create("a"))
    two.broker.send(set_configs(TOPIC, "a"))
    first, second = two.broker.asked
    assert first.lane != second.lane
    assert "control" not in (first.lane, second.lane), "heartbeats would wait for them"


# --- a controller of another release ---


@pytest.mark.parametrize("in_envelope", [True, False])
def test_a_controller_that_serves_less_is_asked_in_its_own_version(
    two: Two, *, in_envelope: bool
) -> None:
    exchange = two.broker.send(create("a"), 7)
    assert two.asked.for_versions is not None
    other = two.asked.for_versions(2, 5)
    assert other is not None
    assert (other.api_key, other.api_version, other.lane) == (19, 5, two.asked.lane)
    two.broker.asked[:] = [other]
    two.deliver_request(in_envelope=in_envelope)
    (topic,) = exchange.answer.topics  # in version 7, whose topic ids the controller does not know
    assert (topic.name, topic.error_code) == ("a", 0)


def test_a_controller_that_does_not_know_the_request(two: Two) -> None:
    for request in (create("a"), UpdateFeaturesRequest()):
        two.broker.asked.clear()
        exchange = two.broker.send(request)
        assert two.asked.for_versions is not None
        assert two.asked.for_versions(0, -1) is None
        answer = exchange.answer
        refused = answer.topics[0] if isinstance(request, CreateTopicsRequest) else answer
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert "the controller is of another release" in refused.error_message


def test_a_version_that_cannot_say_it_all_is_not_used(two: Two) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=bytes(range(16)))])
    exchange = two.broker.send(request, 6)
    assert two.asked.for_versions is not None
    assert two.asked.for_versions(1, 5) is None
    assert exchange.answer.responses[0].error_code == ErrorCode.UNSUPPORTED_VERSION


# --- the client's identity ---

ALICE = Caller(Principal("User", "alice"), Listener("SASL_SSL"), "192.0.2.7")
BOB = Caller(Principal("User", "bob"), CLIENT_LISTENER, "2001:db8::9")


class Three:
    """Three connected brokers; the third is the controller."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.brokers = Together(folder)
        leads = property(lambda node: node.node_id == 3)
        monkeypatch.setattr(Node, "is_controller", leads)
        monkeypatch.setattr(Node, "controller_id", property(lambda _: NodeId(3)))
        self.seen: list[RequestContext] = []
        row = with_handler(SERVED[ApiKey.DELETE_TOPICS], self._delete_topics)
        monkeypatch.setitem(SERVED, ApiKey.DELETE_TOPICS, row)

    def _delete_topics(
        self, node: Node, _: DeleteTopicsRequest, context: RequestContext
    ) -> DeleteTopicsResponse:
        assert node.node_id == 3
        self.seen.append(context)
        return DeleteTopicsResponse(throttle_time_ms=7)


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Three:
    return Three(tmp_path, monkeypatch)


@pytest.mark.parametrize("version", [1, 6])
@pytest.mark.parametrize(("broker", "caller"), [(1, ALICE), (2, BOB), (3, ALICE)])
def test_the_controller_sees_the_client(
    three: Three, broker: int, caller: Caller, version: int
) -> None:
    talk = three.brokers[broker]
    talk.caller = caller
    assert talk.ask(DeleteTopicsRequest(), version).throttle_time_ms == 7
    (context,) = three.seen
    assert (context.caller, context.client_id, context.version) == (caller, "dialogue", version)
    assert not context.caller.listener.is_peer
    assert [key for _, _, key in three.brokers.asked] == ([20] if broker != 3 else [])


def envelope(request: Message, version: int, **parts: Any) -> EnvelopeRequest:
    header = RequestHeader(KEYS[type(request).__name__], version, 5, "client", 0)
    body = encoder(type(request), version)(request)
    made = decode_exact(EnvelopeRequest, 0, write_envelope(header, body, ALICE))
    for name, value in parts.items():
        setattr(made, name, value)
    return made


def opened(two: Two, request: EnvelopeRequest, caller: Caller = PEER) -> EnvelopeResponse:
    ask = Ask(CONTROLLER_AT, "", 58, 0, encoder(EnvelopeRequest, 0)(request), 0, lambda _: None)
    chunks, _ = dispatch(two.controller.node, framed(ask), caller, 0)
    assert isinstance(chunks, list)
    content = b"".join(bytes(chunk) for chunk in chunks)  # type: ignore[arg-type]
    return decode_exact(EnvelopeResponse, 0, content[5:])


def test_a_client_may_not_send_an_envelope(two: Two) -> None:
    with pytest.raises(WireError, match="Envelope is not served"):
        opened(two, envelope(create("a"), 7), CLIENT)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (envelope(DescribeConfigsRequest(), 4), ErrorCode.INVALID_REQUEST),
        (envelope(create("a"), 7, request_data=b""), ErrorCode.INVALID_REQUEST),
        (envelope(create("a"), 7, request_data=b"\0\x13\0\x63" + bytes(9)), 42),
        (envelope(create("a"), 7, client_host_address=b"\x01"), ErrorCode.INVALID_REQUEST),
        (envelope(create("a"), 7, request_principal=None), 97),
        (envelope(create("a"), 7, request_principal=b"\0\x09"), 97),
        (envelope(create("a"), 7, request_principal=b"\0\0\x05ab"), 97),
    ],
)
def test_an_invalid_envelope_is_refused(two: Two, request_: EnvelopeRequest, code: int) -> None:
    assert opened(two, request_) == EnvelopeResponse(error_code=code)
    assert not two.controller.node.image.topics


@pytest.mark.parametrize(
    ("code", "expected"),
    [(41, ErrorCode.NOT_CONTROLLER), (97, ErrorCode.UNKNOWN_SERVER_ERROR), (9999, -1)],
)
def test_the_controller_refuses_an_envelope(two: Two, code: int, expected: int) -> None:
    exchange = two.broker.send(create("a"))
    refusal = encoder(EnvelopeResponse, 0)(EnvelopeResponse(error_code=code))
    two.asked.enveloped().done(memoryview(refusal))
    assert [topic.error_code for topic in exchange.answer.topics] == [expected]


@pytest.mark.parametrize("content", [None, b"", b"\0\0\0\x63\0"])
def test_an_envelope_without_the_response(two: Two, content: bytes | None) -> None:
    exchange = two.broker.send(create("a"))
    reply = encoder(EnvelopeResponse, 0)(EnvelopeResponse(response_data=content))
    two.asked.enveloped().done(memoryview(reply))
    assert [topic.error_code for topic in exchange.answer.topics] == [ErrorCode.NOT_CONTROLLER]


@pytest.mark.parametrize(
    ("host", "arrives"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::9", "2001:db8::9"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::1"),
        ("a-name", ""),
    ],
)
def test_hosts_travel_as_addresses(host: str, arrives: str) -> None:
    header = RequestHeader(ApiKey.CREATE_TOPICS, 7, 5, None, 0)
    written = write_envelope(header, b"body", replace(ALICE, host=host))
    caller, frame = read_envelope(decode_exact(EnvelopeRequest, 0, written))
    assert caller == replace(ALICE, host=arrives)
    assert bytes(frame).endswith(b"body")


def test_the_principal_is_written_as_kafka_writes_it() -> None:
    assert write_principal(BOB) == b"\0\0" + b"\x05User" + b"\x04bob" + b"\0\0" + b"PLAINTEXT"

    by_token = replace(BOB, principal=replace(BOB.principal, is_by_token=True))
    assert write_principal(by_token) == b"\0\0" + b"\x05User" + b"\x04bob" + b"\1\0" + b"PLAINTEXT"
    caller, _ = read_principal(write_principal(by_token))
    assert caller.is_by_token


# --- without a controller ---


def test_no_controller_is_known(two: Two) -> None:
    two.controller_id = None
    answer = two.broker.ask(create("a", "b"))
    assert not two.broker.asked
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.NOT_CONTROLLER] * 2


def test_the_controller_is_lost(two: Two) -> None:
    exchange = two.broker.send(create("a"))
    two.asked.done(None)
    assert [topic.error_code for topic in exchange.answer.topics] == [ErrorCode.NOT_CONTROLLER]


@pytest.mark.parametrize("in_envelope", [True, False])
def test_a_broker_that_is_no_longer_the_controller_refuses(two: Two, *, in_envelope: bool) -> None:
    exchange = two.broker.send(create("a"))
    two.controller_id = NodeId(3)
    two.deliver_request(in_envelope=in_envelope)
    assert not two.controller.asked, "it was forwarded again"
    assert [topic.error_code for topic in exchange.answer.topics] == [ErrorCode.NOT_CONTROLLER]


# --- the error response of every API ---


def delete_topics(version: int) -> Message:
    if version >= 6:
        return DeleteTopicsRequest(topics=[DeleteTopicState(name="a"), DeleteTopicState()])
    return DeleteTopicsRequest(topic_names=["a", "b"])


def elect_leaders(_: int) -> Message:
    return ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="a", partitions=[0, 1])])


ITEM_BY_ITEM: dict[int, Callable[[int], Message]] = {
    19: lambda _: create("a", "b"),
    20: delete_topics,
    30: lambda _: CreateAclsRequest(creations=[AclCreation()] * 2),
    31: lambda _: DeleteAclsRequest(filters=[DeleteAclsFilter()] * 2),
    33: lambda _: alter_configs.AlterConfigsRequest(
        resources=[alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name="a")] * 2
    ),
    37: lambda _: CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="a", assignments=None)] * 2
    ),
    43: elect_leaders,
    51: lambda _: AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="a"), ScramCredentialDeletion(name="b")]
    ),
    44: lambda _: incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=set_configs(TOPIC, "a").resources * 2
    ),
    49: lambda _: AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData()] * 2),
}

ACROSS = [
    pytest.param(key, version, id=f"{APIS[key].name}-{version}")
    for key in sorted(FORWARDED)
    for version in range(APIS[key].low, APIS[key].high + 1)
]


def found_codes(message: Any) -> list[int]:
    """Return every error code in a message, at any depth."""
    found = []
    for name in message.__slots__:
        value = getattr(message, name)
        if name == "error_code":
            found.append(value)
        for item in value if isinstance(value, list) else ():
            found += found_codes(item) if isinstance(item, Message) else []
    return found


@pytest.mark.parametrize(("key", "version"), ACROSS)
def test_a_refusal_has_the_form_of_the_api(key: int, version: int) -> None:
    make = ITEM_BY_ITEM.get(key)
    request = request_class(key)() if make is None else make(version)
    header = RequestHeader(key, version, 1, None, 0)
    answer = decode_exact(response_class(key), version, refuse(header, request))
    codes = [code for code in found_codes(answer) if code != 0]
    single = make is None or (key == ApiKey.ELECT_LEADERS and version > 0)
    assert codes == [ErrorCode.NOT_CONTROLLER] * (1 if single else 2)
