"""TLS handshakes of accepted connections, paced so that many of them do not hold up the loop.

    accepted socket -> waits for its turn -> handshake, in steps -> connection

A step of a handshake takes up to a millisecond, and after a failover thousands of clients connect
at once. So a socket with something to read is queued, and the queue gets a few milliseconds between
other events. Other brokers come first. A handshake counts as a connection from the start, and one
that is not complete in time is closed. While `performance.max_buffered_size` leaves no room for
another TLS connection, those of clients do not begin.

The broker looks at the first bytes of a client before it passes them to TLS, so that it recognises
a client without TLS.
"""

import socket
import ssl
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from barnabas.logs import get
from barnabas.model.callers import Listener, Principal
from barnabas.security.certificate_names import Certificate, CertificateError, read_certificate
from barnabas.security.principal_mapping import PrincipalMapping
from barnabas.server.buffered_memory import UNCOUNTED
from barnabas.server.foreign import HTTP_METHODS
from barnabas.server.peers.peer_names import PeerNames
from barnabas.server.tls.tls_context import TlsContexts
from barnabas.server.tls.tls_memory import CONNECTION_BYTES, TlsMemory

if TYPE_CHECKING:
    from barnabas.server.server import ListenerRole, Server

TURN_NS = 3_000_000
"""How long handshakes may take before other events have their turn."""
TOLD_EVERY_MS = 10_000
MEMORY_RETRY_MS = 100
"""How long handshakes without memory wait before they look for some again."""
NOT_IN_TIME = "the client did not complete it in time"
NO_MEMORY = (
    "no memory for another TLS connection became free in time; raise "
    "performance.max_buffered_size, or lower performance.max_connections"
)
HANDSHAKE_RECORD = 0x16
NO_TLS = "a client without TLS connected to a TLS listener; set security.protocol in the client"
NO_TLS_PEER = "a broker without TLS connected to this one; set cluster.tls_certificate on both"
EXPIRED = 10
"""OpenSSL's code for a certificate that has expired (X509_V_ERR_CERT_HAS_EXPIRED)."""
ALERTS = ("ALERT_UNKNOWN_CA", "ALERT_BAD_CERTIFICATE", "ALERT_CERTIFICATE_UNKNOWN")
EXPIRED_ALERT = "ALERT_CERTIFICATE_EXPIRED"
REMEDIES = {
    "UNEXPECTED_EOF_WHILE_READING": "the client closed the connection during the handshake",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the listener requires a certificate of the client",
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is not from the listener's authorities",
    "NO_SHARED_CIPHER": "the client has no cipher with authenticated encryption",
    "UNSUPPORTED_PROTOCOL": "the client is older than TLS 1.2",
}

log = get("barnabas.server")


class RefusedError(Exception):
    """A client that completed the handshake is not served; the text says why."""


class ListenerTls(NamedTuple):
    """The TLS of one listener."""

    contexts: TlsContexts
    mapping: PrincipalMapping | None = None
    """How certificates become principals; None if the principal comes from SASL."""
    peer_names: PeerNames | None = None
    """The names that a connecting broker may have; None on a listener for clients."""


class Identity(NamedTuple):
    """The identity of a client, by its certificate."""

    principal: Principal | None = None
    certificate: Certificate | None = None


class Handshake:
    """One accepted socket until its handshake is complete."""

    __slots__ = (
        "_accepted",
        "_handshakes",
        "_is_queued",
        "_secured",
        "closed",
        "descriptor",
        "host",
        "last_progress_ms",
        "listener",
        "memory",
        "peer",
        "role",
        "stalled_since_ms",
        "started_ms",
        "tls",
    )

    def __init__(
        self,
        handshakes: "Handshakes",
        accepted: socket.socket,
        host: str,
        role: "ListenerRole",
        tls: ListenerTls,
    ) -> None:
        self._handshakes = handshakes
        self._accepted = accepted
        self._secured: ssl.SSLSocket | None = None
        self._is_queued = False
        self.memory: TlsMemory | None = None
        """What is counted for it; None until it begins."""
        self.host = host
        self.role = role
        self.tls = tls
        self.listener: Listener = role.named
        self.peer = role.named.is_peer
        self.closed = False
        self.descriptor = accepted.fileno()
        self.started_ms = self.last_progress_ms = handshakes.now_ms()
        self.stalled_since_ms: int | None = None

    @property
    def is_muted(self) -> bool:
        """Whether the broker does not read: handshakes have their own time limit (`sweep`)."""
        return True

    def patience_ms(self, stall_ms: int) -> int:
        """Return how long the client may stall."""
        return stall_ms

    def on_readable(self) -> None:
        """Wait for the next turn of handshakes; stop watching for bytes meanwhile."""
        self._handshakes.watch_reading(self, wanted=False)
        self.wait_for_turn()

    def on_writable(self) -> None:
        """Wait for the next turn of handshakes."""
        self._handshakes.watch_writing(self, wanted=False)
        self.wait_for_turn()

    def wait_for_turn(self) -> None:
        """Go on in the next turn of handshakes."""
        if not self._is_queued and not self.closed:
            self._is_queued = True
            self._handshakes.queue(self)

    def flush(self) -> None:
        """Send nothing: no request was answered."""

    def step(self) -> None:
        """Continue the handshake until it waits for the network."""
        self._is_queued = False
        if self.closed:
            return
        handshakes = self._handshakes
        try:
            if self._secured is None and not self._begin():
                handshakes.wait_for_memory(self)
                return
            assert self._secured is not None
            self._secured.do_handshake()
            identity = _identify(self._secured, self)
        except (BlockingIOError, ssl.SSLWantReadError):
            handshakes.watch_reading(self, wanted=True)
        except ssl.SSLWantWriteError:
            handshakes.watch_writing(self, wanted=True)
        except (RefusedError, CertificateError, OSError) as error:
            handshakes.failed(self, error)
        else:
            self.closed = True  # the connection takes over the socket
            handshakes.completed(self, self._secured, identity)

    def _begin(self) -> bool:
        """Begin TLS, unless the client speaks another protocol; return whether there is memory."""
        first = self._accepted.recv(4, socket.MSG_PEEK)
        if not first:
            raise ConnectionError("the client closed the connection")
        if first[0] != HANDSHAKE_RECORD:
            is_http = first in HTTP_METHODS
            problem = NO_TLS_PEER if self.peer else NO_TLS
            raise RefusedError(f"{problem} (it sent an HTTP request)" if is_http else problem)
        self.memory = self._handshakes.memory_for(self)
        if self.memory is None:
            return False
        self._secured = self.tls.contexts.accepting.wrap_socket(
            self._accepted, server_side=True, do_handshake_on_connect=False
        )
        return True

    def close(self) -> None:
        """Close the socket."""
        if self.closed:
            return
        self.closed = True
        self._handshakes.watch_reading(self, wanted=False)
        self._handshakes.watch_writing(self, wanted=False)
        (self._secured or self._accepted).close()
        if self.memory is not None:
            self.memory.release()
        self._handshakes.forget(self)


class Handshakes:
    """The handshakes of all listeners."""

    def __init__(self, server: "Server", timeout_ms: int) -> None:
        self._server = server
        self._timeout_ms = timeout_ms
        self._peers: deque[Handshake] = deque()
        self._clients: deque[Handshake] = deque()
        self._in_progress: dict[Handshake, None] = {}
        """The oldest first."""
        self._without_memory: dict[Handshake, None] = {}
        self._is_due = False
        self._told_at_ms: dict[str, int] = {}
        self._untold: dict[str, int] = {}
        self.completed_count = 0
        self.failed_count = 0

    def __len__(self) -> int:
        return len(self._in_progress)

    def now_ms(self) -> int:
        """Return the time, by a clock that never jumps."""
        return self._server.monotonic_ms()

    def begin(
        self, accepted: socket.socket, host: str, role: "ListenerRole", tls: ListenerTls
    ) -> Handshake:
        """Return the handshake of a socket that was just accepted."""
        handshake = Handshake(self, accepted, host, role, tls)
        self._in_progress[handshake] = None
        return handshake

    def queue(self, handshake: Handshake) -> None:
        """Queue a handshake, which continues in its turn."""
        (self._peers if handshake.peer else self._clients).append(handshake)
        self._schedule()

    def memory_for(self, handshake: Handshake) -> TlsMemory | None:
        """Count the memory of a handshake that begins; return None where there is none left."""
        memory = UNCOUNTED if handshake.peer else self._server.memory
        return TlsMemory(memory) if memory.has_room(CONNECTION_BYTES) else None

    def wait_for_memory(self, handshake: Handshake) -> None:
        """Have a handshake look for memory again in a while."""
        if not self._without_memory:
            self._server.node.timers.after(MEMORY_RETRY_MS, self._look_for_memory)
        self._without_memory[handshake] = None

    def _look_for_memory(self) -> None:
        waiting, self._without_memory = self._without_memory, {}
        for handshake in waiting:
            handshake.wait_for_turn()

    def _schedule(self) -> None:
        if not self._is_due and (self._peers or self._clients):
            self._is_due = True
            self._server.soon(self._work)

    def _work(self) -> None:
        """Do some steps, then let other events run."""
        self._is_due = False
        end_ns = time.monotonic_ns() + TURN_NS
        while self._peers or self._clients:
            (self._peers or self._clients).popleft().step()
            if time.monotonic_ns() >= end_ns:
                break
        self._schedule()

    def completed(self, handshake: Handshake, secured: ssl.SSLSocket, identity: Identity) -> None:
        """Pass the socket to a connection."""
        self._in_progress.pop(handshake, None)
        self.completed_count += 1
        self._server.begin_secured(handshake, secured, identity)

    def failed(self, handshake: Handshake, error: Exception) -> None:
        """Log why a handshake failed, and close the socket."""
        self.failed_count += 1
        if isinstance(error, RefusedError | CertificateError | ssl.SSLError):
            problem = _described(error)
            if self._is_to_be_told(f"{handshake.listener.name} {problem}"):
                log.warning(
                    "a TLS handshake failed",
                    client=handshake.host,
                    listener=handshake.listener.name,
                    problem=problem,
                    **self._count(f"{handshake.listener.name} {problem}"),
                )
        else:
            log.debug("lost a connection", client=handshake.host, problem=str(error))
        handshake.close()

    def _is_to_be_told(self, problem: str) -> bool:
        """Tell whether a problem is logged: the first time, then every few seconds."""
        now_ms, told_at_ms = self.now_ms(), self._told_at_ms.get(problem)
        if told_at_ms is not None and now_ms - told_at_ms < TOLD_EVERY_MS:
            self._untold[problem] = self._untold.get(problem, 0) + 1
            return False
        if len(self._told_at_ms) >= 1000:
            self._told_at_ms.clear()
        self._told_at_ms[problem] = now_ms
        return True

    def _count(self, problem: str) -> dict[str, int]:
        untold = self._untold.pop(problem, 0)
        return {"times": untold + 1} if untold else {}

    def sweep(self, now_ms: int) -> None:
        """Close the handshakes that took too long."""
        for handshake in list(self._in_progress):
            if now_ms - handshake.started_ms <= self._timeout_ms:
                return
            lacks_memory = handshake in self._without_memory
            self.failed(handshake, RefusedError(NO_MEMORY if lacks_memory else NOT_IN_TIME))

    def forget(self, handshake: Handshake) -> None:
        """Drop a handshake that was closed."""
        self._in_progress.pop(handshake, None)
        self._without_memory.pop(handshake, None)
        self._server.forget(handshake)

    def watch_reading(self, handshake: Handshake, *, wanted: bool) -> None:
        """Call `on_readable` when bytes have arrived, or stop doing so."""
        self._server.watch_reading(handshake, wanted=wanted)

    def watch_writing(self, handshake: Handshake, *, wanted: bool) -> None:
        """Call `on_writable` when the kernel has room, or stop doing so."""
        self._server.watch_writing(handshake, wanted=wanted)


def _identify(secured: ssl.SSLSocket, handshake: Handshake) -> Identity:
    """Return the identity of a client; raise `RefusedError` if it must not be served."""
    tls = handshake.tls
    if secured.context.verify_mode == ssl.CERT_NONE:
        return Identity()
    encoded = secured.getpeercert(binary_form=True)
    if encoded is None:
        return Identity()
    certificate = read_certificate(encoded)
    if tls.peer_names is not None:
        seen = secured.getpeercert() or {}
        if not tls.peer_names.accepts(seen, handshake.host):
            raise RefusedError(
                f"the certificate of {certificate.subject} names no broker that is known here; add "
                "its name to cluster.tls_peer_names"
            )
    if tls.mapping is None:
        return Identity(None, certificate)
    name = tls.mapping.principal_of(certificate.subject)
    if name is None:
        raise RefusedError(f"no principal_mapping_rule matches {certificate.subject}")
    return Identity(Principal("User", name), certificate)


def _described(error: Exception) -> str:
    """Return the reason of a failure, and what to change if that is known."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == EXPIRED:
            return "the client's certificate has expired"
        return f"{REMEDIES['CERTIFICATE_VERIFY_FAILED']}: {error.verify_message}"
    if not isinstance(error, ssl.SSLError):
        return str(error)
    reason = error.reason or str(error)
    if reason.endswith(EXPIRED_ALERT):
        return f"the certificate of this broker has expired, the client says; replace it ({reason})"
    if any(reason.endswith(alert) for alert in ALERTS):
        return f"the client does not trust the certificate of this broker ({reason})"
    remedy = REMEDIES.get(reason)
    return f"{remedy} ({reason})" if remedy else reason
