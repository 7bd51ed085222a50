"""Every API in every version, asked by a client that has not logged in: none is answered.

The rest of the matrix is in `tests/unit/handlers/test_authorization_matrix.py`.
"""

import pytest

from barnabas.handlers.registry import PEER_SERVED, SERVED
from barnabas.handlers.rows.row import Row
from barnabas.protocol.apis import APIS, request_class
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from tests.support.security.sasl_talk import SaslTalk
from tests.support.talk.rights import REQUESTS, Ids

BEFORE_A_LOGIN = {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}
GUARDED = [
    row for row in {**PEER_SERVED, **SERVED}.values() if APIS[row.key].name not in BEFORE_A_LOGIN
]
VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
IDS = Ids(b"s" * 16, b"o" * 16, (1, 0))


def arrive(talk: SaslTalk, after: str) -> None:
    """Take the client to a point before its login."""
    if after == "versions":
        talk.ask(VERSIONS, 4)
    elif after == "handshake":
        talk.handshake("SCRAM-SHA-256")


@pytest.mark.parametrize("after", ["nothing", "versions", "handshake"])
@pytest.mark.parametrize("row", GUARDED, ids=lambda row: row.key.name)
def test_the_connection_is_closed_without_an_answer(row: Row, after: str) -> None:
    name = APIS[row.key].name
    for version in range(row.low, row.high + 1):
        make = REQUESTS.get(name)
        request = request_class(row.key)() if make is None else make(version, IDS)
        talk = SaslTalk()
        arrive(talk, after)
        before, metadata = list(talk.answers), talk.edge.node.image
        talk.send(request, version)
        assert (talk.answers, talk.connection.closed) == (before, True), version
        assert talk.edge.node.image is metadata
        assert name in str(talk.problems), "the log says which request it was"
