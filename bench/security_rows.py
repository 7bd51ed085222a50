"""The rows about security, as data: TLS, handshakes, logins, ACLs.

make bench ARGS="--only security"
"""

from typing import NamedTuple

from bench.access import Listener, Setup
from bench.java_loads import JavaProduce
from bench.loads import Consume, EndToEnd, Handshakes, Produce, Requests
from bench.metrics import (
    BYTES,
    CPU,
    CPU_HANDSHAKE,
    CPU_REQUEST,
    HANDSHAKES,
    LATENCIES,
    P99,
    REQUESTS,
)
from bench.row import Row

EVERY_SECURITY_ROW = "security"
"""The name of all of these rows on the command line."""
RECORDS = "1 KB over TLS"
REQUESTS_SECTION = "Small requests: one record a request"
SMALL = (REQUESTS, P99, CPU_REQUEST)
TITLES = {
    Listener.PLAINTEXT: "plaintext",
    Listener.TLS: "TLS",
    Listener.SASL_SSL: "SASL_SSL, after the login",
    Listener.SASL_PLAINTEXT: "SASL_PLAINTEXT, after the login",
}


def requests(key: str, listener: Listener, connections: int, setup: Setup = Setup.SECURED) -> Row:
    """Connections with one small request in flight each."""
    what = "10,000 ACLs" if setup is Setup.ACLS else "no authorizer"
    title = TITLES[listener]
    return Row(
        key=key,
        section=REQUESTS_SECTION,
        title=f"{connections} connections, {title}, {what}",
        load=Requests(connections=connections),
        metrics=SMALL,
        partitions=16,
        setup=setup,
        listener=listener,
        warm_gb=0,
    )


def handshakes(key: str, listener: Listener, title: str) -> Row:
    """Clients that connect again and again."""
    return Row(
        key=key,
        section="Handshakes: 16 clients connect, ask for ApiVersions, close, and connect again",
        title=title,
        load=Handshakes(connections=16),
        metrics=(HANDSHAKES, CPU_HANDSHAKE),
        setup=Setup.SECURED,
        listener=listener,
        warm_gb=0,
    )


SECURITY_ROWS = (
    Row(
        key="tls-produce-1k",
        section=RECORDS,
        title="produce, client defaults",
        load=JavaProduce(size=1024),
        metrics=(BYTES, CPU),
        setup=Setup.SECURED,
        listener=Listener.TLS,
    ),
    Row(
        key="tls-produce-1k-rdkafka",
        section=RECORDS,
        title="produce, librdkafka, batches up to 1 MB",
        load=Produce(size=1024),
        metrics=(BYTES, CPU),
        setup=Setup.SECURED,
        listener=Listener.TLS,
        warm_gb=6,
    ),
    Row(
        key="tls-consume-1k",
        section=RECORDS,
        title="consume",
        load=Consume(size=1024),
        metrics=(BYTES, CPU),
        setup=Setup.SECURED,
        listener=Listener.TLS,
        warm_gb=2,
    ),
    Row(
        key="tls-end-to-end-2000",
        section="End-to-end latency over TLS",
        title="1 KB at 2,000 msg/s",
        load=EndToEnd(size=1024, rate=2000),
        metrics=LATENCIES,
        setup=Setup.SECURED,
        listener=Listener.TLS,
        warm_gb=0,
    ),
    requests("plain-requests-16", Listener.PLAINTEXT, 16),
    requests("tls-requests-16", Listener.TLS, 16),
    requests("tls-requests-64", Listener.TLS, 64),
    requests("sasl-ssl-requests-16", Listener.SASL_SSL, 16),
    requests("sasl-ssl-requests-64", Listener.SASL_SSL, 64),
    requests("acls-off", Listener.SASL_PLAINTEXT, 16),
    requests("acls-10000", Listener.SASL_PLAINTEXT, 16, Setup.ACLS),
    handshakes("tls-handshakes", Listener.TLS, "TLS"),
    handshakes("mtls-handshakes", Listener.MTLS, "TLS with a certificate of the client"),
)


class Cost(NamedTuple):
    """What something costs a broker: a row with it beside the row without it."""

    title: str
    without: str
    with_it: str


COSTS = (
    Cost("TLS, 16 connections", "plain-requests-16", "tls-requests-16"),
    Cost("a login before, 16 connections", "tls-requests-16", "sasl-ssl-requests-16"),
    Cost("a login before, 64 connections", "tls-requests-64", "sasl-ssl-requests-64"),
    Cost("10,000 ACLs, 16 connections", "acls-off", "acls-10000"),
)
