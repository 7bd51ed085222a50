"""Whatever a stranger sends to a SASL listener: no crash, little memory, and nothing is served.

The garbage is random bytes, frames of every API, and the dialogues of good clients with a byte
changed, cut or repeated; in any pieces, and with pauses.
"""

from struct import Struct

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.model.security_settings import SecuritySettings
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.examples import LONG
from tests.support.security.sasl_talk import ALL, SaslTalk
from tests.support.talk.one_connection import Asked

EXAMPLES = 5_000 if LONG else 150
LIMIT = 4_096
LENGTH, HEADER = Struct(">i"), Struct(">hhih")
TOKENS = (
    b"\0alice\0wrong",
    b"\0alice\0open sesame\0",
    b"n,,n=alice,r=nonce",
    b"c=biws,r=nonce,p=cHJvb2Y=",
    b"n,,\x01auth=Bearer a.b.c\x01\x01",
    b"\x01",
    b"",
)


def framed(content: bytes) -> bytes:
    return LENGTH.pack(len(content)) + content


requests = st.one_of(
    st.sampled_from(TOKENS).map(
        lambda token: Asked(SaslAuthenticateRequest(auth_bytes=token), 1).frame(1)
    ),
    st.binary(max_size=200).map(
        lambda token: Asked(SaslAuthenticateRequest(auth_bytes=token), 2).frame(1)
    ),
    st.tuples(st.sampled_from([*ALL, "OAUTHBEARER", "x"]), st.sampled_from([0, 1])).map(
        lambda each: Asked(SaslHandshakeRequest(mechanism=each[0]), each[1]).frame(1)
    ),
    st.just(
        Asked(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3).frame(1)
    ),
    st.just(Asked(MetadataRequest(topics=None), 12).frame(1)),
    st.tuples(st.integers(-1, 100), st.integers(-1, 20), st.binary(max_size=60)).map(
        lambda each: framed(HEADER.pack(each[0], each[1], 1, 1) + b"c" + each[2])
    ),
    st.sampled_from(TOKENS).map(framed),
    st.binary(max_size=100),
    st.binary(max_size=100).map(framed),
    st.integers(0, 2**31 - 1).map(LENGTH.pack),
)


@st.composite
def garbage(draw: st.DrawFn) -> bytes:
    content = bytearray(b"".join(draw(st.lists(requests, min_size=1, max_size=6))))
    for _ in range(draw(st.integers(0, 3))):
        if content:
            place = draw(st.integers(0, len(content) - 1))
            content[place] = draw(st.integers(0, 255))
    return bytes(content)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    stream=garbage(),
    pieces=st.lists(st.integers(1, 300), max_size=20),
    pauses=st.lists(st.sampled_from([0, 0, 0, 100, 3_000]), max_size=20),
)
def test_garbage_before_authentication(stream: bytes, pieces: list[int], pauses: list[int]) -> None:
    talk = SaslTalk(SecuritySettings(sasl_receive_bytes_max=LIMIT))
    while stream and not talk.connection.closed:
        size = pieces.pop() if pieces else len(stream)
        talk.arrive(stream[:size])
        stream = stream[size:]
        talk.pass_time(pauses.pop() if pauses else 1)
        frame = talk.connection._frame
        assert frame is None or len(frame.buffer) <= LIMIT + 4
    talk.pass_time(10_000)
    assert talk.connection.closed
    assert not any(isinstance(problem, Exception) for problem in talk.problems)
    assert len(b"".join(talk.answers)) < 10_000
    assert not talk.edge.node.image.topics
