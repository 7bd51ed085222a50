"""All certificates of a broker: those of its listeners, and the one for other brokers.

Their files are checked every few seconds (`security.certificate_check_interval`) and at SIGHUP.
Testing new files takes several milliseconds for each listener, so each has a separate event.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.model.security_settings import ListenerSettings
from barnabas.security.principal_mapping import PrincipalMapping
from barnabas.server.listener_configs import ListenerConfigs
from barnabas.server.peers.peer_names import PeerNames
from barnabas.server.tls.handshakes import ListenerTls
from barnabas.server.tls.tls_context import TlsContexts

if TYPE_CHECKING:
    from barnabas.server.server import Server

EXPIRY_CHECK_MS = 3_600_000


class Certificates:
    """Reloads certificates whose files change, and warns before they expire."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._all: list[TlsContexts] = []
        node = server.node
        data = Path(node.settings.broker.data_dir)
        self._configs = node.dynamic_tls = ListenerConfigs(node.node_id, data, self._committed)

    def _committed(self) -> Mapping[str, str]:
        """Return the dynamic configs of this broker."""
        node = self._server.node
        return node.image.broker_configs.get(str(node.node_id), {})

    def of_listener(self, listener: ListenerSettings) -> ListenerTls | None:
        """Return the TLS of a listener for clients; None if it has none."""
        if not listener.has_tls:
            self._configs.add(listener.name, None)
            return None
        contexts = self._keep(TlsContexts(listener.tls_files))
        self._configs.add(listener.name, contexts)
        is_named = listener.protocol == "SSL" and listener.client_authentication != "none"
        mapping = PrincipalMapping(listener.principal_mapping_rules) if is_named else None
        return ListenerTls(contexts, mapping)

    def of_peers(self) -> ListenerTls | None:
        """Return the TLS of the listener for other brokers, and use it to connect to them."""
        cluster = self._server.node.settings.cluster
        if cluster.tls_files is None:
            return None
        contexts = self._keep(TlsContexts(cluster.tls_files, connects=True))
        self._server.peers.tls = contexts
        return ListenerTls(contexts, None, PeerNames(cluster.tls_peer_names, self._peer_hosts))

    def start(self) -> None:
        """Begin to check the files from time to time."""
        if not self._all:
            return
        self._warn()
        if self._server.node.settings.security.certificate_check_ms:
            self._look_later()

    def reload(self) -> None:
        """Read all files again."""
        for contexts in self._all:
            self._server.in_turn(partial(_reload, contexts))

    def _keep(self, contexts: TlsContexts) -> TlsContexts:
        self._all.append(contexts)
        return contexts

    def _look_later(self) -> None:
        interval_ms = self._server.node.settings.security.certificate_check_ms
        self._server.node.timers.after(interval_ms, self._look)

    def _look(self) -> None:
        for contexts in self._all:
            self._server.in_turn(contexts.reload_if_changed)
        self._look_later()

    def _warn(self) -> None:
        for contexts in self._all:
            contexts.warn_before_expiry(self._server.wall_clock_ms() / 1000)
        self._server.node.timers.after(EXPIRY_CHECK_MS, self._warn)

    def _peer_hosts(self) -> Iterator[str]:
        """Return the hosts of voters and of registered brokers."""
        node = self._server.node
        for voter in node.settings.cluster.voters:
            host, _, _ = voter.partition("@")[2].rpartition(":")
            yield host.strip("[]")
        for broker in node.image.brokers.values():
            yield broker.peer_host


def _reload(contexts: TlsContexts) -> None:
    contexts.reload()
