"""Tests the codec by example: bytes written by hand, and every kind of invalid bytes."""

import pytest

from barnabas.model.errors import WireError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, request_class, response_class
from barnabas.protocol.codec import decode_exact, decoder, encoder, parts_encoder
from barnabas.protocol.message import Encoded
from barnabas.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.sync_group import SyncGroupResponse


def test_fixed_lengths_before_flexible_versions() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="ab")])
    encoded = b"\x00\x00\x00\x01\x00\x02ab\x01"
    assert encoder(MetadataRequest, 4)(request) == encoded
    assert decode_exact(MetadataRequest, 4, encoded) == request


def test_varint_lengths_and_tagged_sections_from_flexible_versions_on() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=bytes(range(16)), name=None)])
    encoded = b"\x02" + bytes(range(16)) + b"\x00\x00" + b"\x01\x00\x00"
    assert encoder(MetadataRequest, 12)(request) == encoded
    assert decode_exact(MetadataRequest, 12, encoded) == request


def test_null_array_differs_from_empty_array() -> None:
    for topics, encoded in ((None, b"\xff\xff\xff\xff\x01"), ([], b"\x00\x00\x00\x00\x01")):
        request = MetadataRequest(topics=topics)
        assert encoder(MetadataRequest, 4)(request) == encoded
        assert decode_exact(MetadataRequest, 4, encoded).topics == topics


def test_strings_around_the_second_varint_byte_and_up_to_the_limit() -> None:
    for length in (126, 127, 128, 16382, 16383, 32767):
        request = HeartbeatRequest(group_id="x" * length)
        encoded = encoder(HeartbeatRequest, 4)(request)
        assert decode_exact(HeartbeatRequest, 4, encoded) == request


def test_known_tagged_fields_are_written_only_when_they_differ() -> None:
    plain = encoder(ApiVersionsResponse, 3)(ApiVersionsResponse())
    assert plain == b"\x00\x00\x01\x00\x00\x00\x00\x00"
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=4)],
        finalized_features_epoch=7,
        finalized_features=[FinalizedFeatureKey(name="f", max_version_level=1)],
    )
    encoded = encoder(ApiVersionsResponse, 3)(response)
    section = (
        b"\x02" + b"\x01\x08" + (7).to_bytes(8, "big") + b"\x02\x08\x02\x02f\x00\x01\x00\x00\x00"
    )
    assert encoded.endswith(section)
    assert decode_exact(ApiVersionsResponse, 3, encoded) == response


def test_tagged_struct_in_a_fetch_response() -> None:
    partition = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=5))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    encoded = encoder(FetchResponse, 16)(response)
    assert b"\x01\x01\x09" + b"\x00\x00\x00\x02\x00\x00\x00\x05\x00" in encoded
    assert decode_exact(FetchResponse, 16, encoded) == response


def test_unknown_tagged_fields_are_skipped() -> None:
    encoded = b"\x00\x01\x00" + b"\x02\x05\x03abc\x87\x68\x00"
    assert decode_exact(MetadataRequest, 12, encoded) == MetadataRequest(
        topics=None, allow_auto_topic_creation=True
    )


def test_a_tagged_field_must_fill_its_size() -> None:
    epoch = b"\x01" + (7).to_bytes(8, "big")
    head = b"\x00\x00\x01\x00\x00\x00\x00\x01"
    with pytest.raises(WireError, match="tagged field of ApiVersionsResponse"):
        decode_exact(ApiVersionsResponse, 3, head + epoch[:1] + b"\x09" + epoch[1:] + b"\x00")


def test_nullable_struct_has_a_presence_byte() -> None:
    encoded = encoder(ConsumerGroupHeartbeatResponse, 0)(ConsumerGroupHeartbeatResponse())
    assert encoded.endswith(b"\xff\x00")
    assert decode_exact(ConsumerGroupHeartbeatResponse, 0, encoded).assignment is None


@pytest.mark.parametrize(
    ("version", "encoded", "message"),
    [
        (4, b"", "requires a buffer"),
        (4, b"\xff\xff\xff\xfe\x01", "length of -2"),
        (4, b"\x7f\xff\xff\xff\x01", "topics claims a length of 2147483647"),
        (4, b"\x00\x00\x00\x01\xff\xff\x01", "name is null"),
        (4, b"\x00\x00\x00\x01\x00\x09ab\x01", "name claims a length of 9"),
        (4, b"\x00\x00\x00\x01\x00\x02\xff\xfe\x01", "utf-8"),
        (0, b"\xff\xff\xff\xff", "topics is null"),
        (12, b"\xff\xff\xff\xff\x0f\x01\x00\x00", "topics claims a length of 4294967294"),
        (12, b"\xff\xff\xff\xff\xff\xff", "varint"),
        (12, b"\x80", "out of range|index"),
        (12, b"\x00\x01\x00\xff\xff\xff\xff\x0f", "out of range|index"),
        (12, b"\x00\x01\x00\x01\x05\x7f", "tagged field claims"),
        (12, b"\x02" + bytes(16) + b"\xff\xff\x7f" + bytes(99), "string claims"),
    ],
)
def test_lies_are_refused(version: int, encoded: bytes, message: str) -> None:
    for buffer in (encoded, bytearray(encoded), memoryview(encoded)):
        with pytest.raises(WireError, match=message):
            decode_exact(MetadataRequest, version, buffer)


def test_trailing_bytes_are_refused_unless_allowed() -> None:
    with pytest.raises(WireError, match="2 bytes follow MetadataRequest v0"):
        decode_exact(MetadataRequest, 0, b"\x00\x00\x00\x00ab")
    decode_exact(MetadataRequest, 0, b"\x00\x00\x00\x00ab", trailing=True)


def test_fields_that_a_version_lacks_take_their_defaults() -> None:
    request = decode_exact(MetadataRequest, 0, b"\x00\x00\x00\x00")
    assert request.allow_auto_topic_creation is True
    assert request.include_topic_authorized_operations is False


def test_a_value_without_a_place_is_refused_by_name() -> None:
    with pytest.raises(
        ValueError, match=r"MetadataRequest\.allow_auto_topic_creation .* version 0"
    ):
        encoder(MetadataRequest, 0)(MetadataRequest(allow_auto_topic_creation=False))
    # Ignorable: a fetch in an old version does not have its rack.
    encoder(FetchRequest, 4)(FetchRequest(rack_id="r"))


def test_what_cannot_be_encoded_is_named() -> None:
    partition = MetadataResponsePartition(leader_id=1 << 31)
    topic = MetadataResponseTopic(name="t", partitions=[MetadataResponsePartition(), partition])
    cases: list[tuple[MetadataResponse, str]] = [
        (MetadataResponse(topics=[topic]), r"topics\[0\]\.partitions\[1\]\.leader_id cannot hold"),
        (MetadataResponse(topics=[None]), r"topics\[0\] is null"),  # type: ignore[list-item]
        (MetadataResponse(brokers=None), "brokers is null"),  # type: ignore[arg-type]
        (MetadataResponse(cluster_id="\ud800"), "cluster_id cannot hold"),
        (MetadataResponse(cluster_id="x" * 40_000), "cluster_id cannot hold"),
        (MetadataResponse(topics=[MetadataResponseTopic(topic_id=b"")]), "topic_id cannot hold"),
        (
            MetadataResponse(topics=[MetadataResponseTopic(is_internal=None)]),  # type: ignore[arg-type]
            "is_internal is null",
        ),
    ]
    for response, message in cases:
        for encode in (encoder(MetadataResponse, 12), parts_encoder(MetadataResponse, 12)):
            with pytest.raises(ValueError, match=message):
                encode(response)
    with pytest.raises(ValueError, match=r"topics\[0\]\.name is null"):
        encoder(MetadataResponse, 11)(MetadataResponse(topics=[MetadataResponseTopic(name=None)]))


def test_unknown_versions_have_no_codec() -> None:
    with pytest.raises(ValueError, match="versions 0 to 13, not 14"):
        decoder(MetadataRequest, 14)
    with pytest.raises(ValueError, match="versions 4 to 18, not 3"):
        encoder(FetchRequest, 3)


def produce(records: bytes | memoryview) -> ProduceRequest:
    partition = PartitionProduceData(index=1, records=records)
    return ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])


def test_records_stay_a_view_of_the_frame_and_all_else_is_copied() -> None:
    frame = memoryview(bytearray(encoder(ProduceRequest, 9)(produce(b"batch"))))
    request = decode_exact(ProduceRequest, 9, frame)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame.obj
    encoded = encoder(SyncGroupResponse, 5)(SyncGroupResponse(assignment=b"a"))
    assert type(decode_exact(SyncGroupResponse, 5, memoryview(encoded)).assignment) is bytes


def test_parts_hand_records_on_uncopied() -> None:
    records = memoryview(b"batch")
    parts = parts_encoder(ProduceRequest, 9)(produce(records))
    assert parts[1] is records
    assert b"".join(parts) == encoder(ProduceRequest, 9)(produce(records))


def test_messages_compare_by_value_and_cannot_be_keys() -> None:
    assert MetadataRequestTopic(name="a") == MetadataRequestTopic(name="a")
    assert MetadataRequestTopic(name="a") != MetadataRequestTopic(name="b")
    assert MetadataRequestTopic(name="a") != "a"
    assert "name='a'" in repr(MetadataRequestTopic(name="a"))
    with pytest.raises(TypeError, match="unhashable"):
        {MetadataRequestTopic()}
    assert MetadataRequest().topics is not MetadataRequest().topics


def test_the_table_of_apis_agrees_with_the_classes() -> None:
    for key, facts in APIS.items():
        for cls in (request_class(key), response_class(key)):
            assert (facts.low, facts.high) == cls.VERSIONS
            assert facts.flexible_from == cls.FLEXIBLE_FROM


@pytest.mark.parametrize("version", range(14))
def test_elements_that_are_encoded_already_are_taken_as_they_are(version: int) -> None:
    topics = [
        MetadataResponseTopic(name=name, partitions=[MetadataResponsePartition(partition_index=n)])
        for n, name in enumerate(("a", "b"))
    ]
    whole = encoder(MetadataResponse, version)(MetadataResponse(topics=topics))
    encode = encoder(MetadataResponseTopic, version)
    encoded = Encoded([encode(topic) for topic in topics])
    assert encoder(MetadataResponse, version)(MetadataResponse(topics=encoded)) == whole
