"""Check that the cluster settings of one broker are consistent.

Whether all brokers have the same voters cannot be checked here; the quorum detects it.
"""

from collections import Counter
from collections.abc import Iterator

from barnabas.config.units import format_time
from barnabas.effects import Address
from barnabas.model.settings import Settings
from barnabas.node.cluster.peer_requests import voter_addresses

EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared with, not bound to
HERE = ("localhost", "127.0.0.1", "::1")


def problems(settings: Settings) -> Iterator[str]:
    """Return each inconsistency, with what to change."""
    cluster, me = settings.cluster, settings.broker.node_id
    yield from _repeated(cluster.voters)
    own = voter_addresses(cluster.voters).get(me)
    if not cluster.voters and cluster.roles != "both":
        yield (
            f'cluster.roles is "{cluster.roles}", but cluster.voters is empty: a single broker '
            "has all roles; set cluster.voters, or remove cluster.roles"
        )
    if cluster.voters and own is None and cluster.roles != "broker":
        yield (
            f"cluster.voters does not name this broker (broker.id is {me}); add "
            f'{me}@host:port to it, or set cluster.roles to "broker"'
        )
    if own is not None and cluster.roles == "broker":
        yield (
            f'cluster.roles is "broker", but cluster.voters names this broker (broker.id is {me}); '
            "remove it from cluster.voters, or remove cluster.roles"
        )
    if own is not None:
        yield from _elsewhere(settings, own)
    yield from _silence(settings)


def _repeated(voters: tuple[str, ...]) -> Iterator[str]:
    times = Counter(int(voter.partition("@")[0]) for voter in voters)
    for number in (number for number, count in times.items() if count > 1):
        yield f"cluster.voters names broker {number} more than once; give each voter its own id"


def _elsewhere(settings: Settings, own: Address) -> Iterator[str]:
    """Compare the address that the broker listens on with the one that other brokers connect to."""
    cluster, me = settings.cluster, settings.broker.node_id
    said = f"cluster.voters says that broker {me} listens on {own}"
    if cluster.port not in (0, own.port):
        yield f"cluster.port is {cluster.port}, but {said}; use the same port"
    host = cluster.advertised_host or cluster.host
    same = host == own.host or (host in HERE and own.host in HERE)
    if not same and host not in EVERYWHERE:
        name = "advertised_host" if cluster.advertised_host else "host"
        yield (
            f"cluster.{name} is {host!r}, but {said}; use the same address, or set "
            f"cluster.advertised_host to {own.host!r} if both are the same host"
        )


def _silence(settings: Settings) -> Iterator[str]:
    session_ms = settings.cluster.broker_session_timeout_ms
    interval_ms = settings.cluster.broker_heartbeat_interval_ms
    if interval_ms * 2 > session_ms:
        yield (
            f"cluster.broker_heartbeat_interval ({format_time(interval_ms)}) must be at most half "
            f"of cluster.broker_session_timeout ({format_time(session_ms)}), otherwise one late "
            "heartbeat fences the broker; raise the second"
        )
