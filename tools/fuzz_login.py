"""Sends garbage to the listeners of a running broker, before any login.

The rule: the broker does not end, logs no defect, does not grow, and accepts good logins at last.
Each input is a connection of its own (`login_garbage.py`), to a listener with SASL_PLAINTEXT,
SASL_SSL or SSL. Some hundreds are open at the same time. Most clients say that nothing follows, and
wait until the broker has answered or closed; some leave at once.

    python -m tools.fuzz_login [--inputs N] [--seed N] [--tls SHARE] [--handshakes SHARE]
"""

import argparse
import contextlib
import json
import os
import socket
import ssl
import struct
import sys
import tempfile
import time
from collections import Counter, deque
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc.jwk import RSAKey

from barnabas.cli.cert.authority import Authority
from barnabas.testing.process import BrokerSubprocess
from barnabas.wire.cluster_wire import Wire
from tools.login_garbage import Garbage, Input

ADMIN, PASSWORD = "admin", "open sesame"
SETTINGS = """\
listeners:
  PLAIN: {{listen: "127.0.0.1:0"}}
  LOGIN:
    listen: 127.0.0.1:0
    protocol: SASL_PLAINTEXT
    mechanisms: &all [PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER]
  SECURE_LOGIN:
    listen: 127.0.0.1:0
    protocol: SASL_SSL
    mechanisms: *all
    certificate: {folder}/broker.pem
    key: {folder}/broker.key
  SECURE:
    listen: 127.0.0.1:0
    protocol: SSL
    certificate: {folder}/broker.pem
    key: {folder}/broker.key
  MUTUAL:
    listen: 127.0.0.1:0
    protocol: SSL
    certificate: {folder}/broker.pem
    key: {folder}/broker.key
    authorities: {folder}/ca.pem
    client_authentication: required
broker:
  auto_create_topics: false
security:
  handshake_timeout: 2s
  oauth_keys: {folder}/keys.json
  oauth_issuer: https://issuer.test
  oauth_audience: kafka
"""
SECURE_LISTENERS = ("SECURE_LOGIN", "SECURE", "MUTUAL")
OPEN_AT_ONCE = 256
TOLD_EVERY_S = 10.0
WARM_UP_SHARE = 0.1
GROWTH_MAX_KIB = 30 * 1024
ANSWER_BYTES = 65_536
PATIENCE_S = 30.0
NEVER_CLOSED = "never closed by the broker"
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: close with a reset."""
DEFECTS = ('"exception"', "Traceback", '"level": "error"', '"level": "critical"')
"""What a line of the log has if something went wrong in the broker."""


class Attacker:
    """The connections that are open, and what came of them."""

    def __init__(self, broker: BrokerSubprocess) -> None:
        self._plain = address_of(broker, "LOGIN")
        self._secure = [address_of(broker, name) for name in SECURE_LISTENERS]
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self._open: deque[tuple[socket.socket, list[bytes]]] = deque()
        self._ended: set[socket.socket] = set()
        """Those of the open ones that have sent all, and wait for the broker to close them."""
        self._count = 0
        self.outcomes: Counter[str] = Counter()

    def send(self, one: Input) -> None:
        """Begin with an input; go on with the oldest ones if many are open."""
        self._count += 1
        address = self._plain if one.is_plain else self._secure[self._count % len(self._secure)]
        client = socket.create_connection(address, PATIENCE_S)
        parts = list(one.parts)
        if one.handshakes:
            parts = self._after_handshake(client, parts, encrypt=one.is_encrypted)
        self._go_on(client, parts)
        while len(self._open) > OPEN_AT_ONCE:
            self._go_on(*self._open.popleft())

    def finish(self) -> None:
        """Send the rest, and close everything."""
        while self._open:
            self._go_on(*self._open.popleft())

    def _go_on(self, client: socket.socket, parts: list[bytes]) -> None:
        """Send the next part; after the last one end the input, then wait for the broker."""
        try:
            if parts:
                client.sendall(parts[0])
                if parts[1:] or self._count % 8:
                    self._open.append((client, parts[1:]))
                    return
                client.setblocking(False)
            elif client not in self._ended:
                client.shutdown(socket.SHUT_WR)
                self._ended.add(client)
                self._open.append((client, []))
                return
            answer = client.recv(ANSWER_BYTES)
            self.outcomes["answered" if answer else "closed by the broker"] += 1
        except BlockingIOError:
            self.outcomes["left by the client"] += 1
        except TimeoutError:
            self.outcomes[NEVER_CLOSED] += 1
        except OSError:
            self.outcomes["closed by the broker"] += 1
        self._ended.discard(client)
        if self._count % 2:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.close()

    def _after_handshake(
        self, client: socket.socket, parts: list[bytes], *, encrypt: bool
    ) -> list[bytes]:
        """Complete a handshake; return the parts as they go out after it."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(incoming, outgoing)
        try:
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    client.sendall(outgoing.read())
                    incoming.write(client.recv(ANSWER_BYTES))
            self.outcomes["handshakes completed"] += 1
            if not encrypt:
                return [outgoing.read() + parts[0], *parts[1:]]
            records = []
            for part in parts:
                tls.write(part)
                records.append(outgoing.read())
        except OSError:
            self.outcomes["handshakes failed"] += 1
            return []
        else:
            return records


def address_of(broker: BrokerSubprocess, listener: str) -> tuple[str, int]:
    """Return where a listener is."""
    host, _, port = broker.listeners[listener].rpartition(":")
    return host, int(port)


def resident_kib(pid: int) -> int:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def prepare(folder: Path) -> list[str]:
    """Write settings, certificates and a key set; return the arguments of the broker."""
    authority = Authority(folder, 1)
    authority.sign_broker("broker", ["localhost", "127.0.0.1"])
    key = rsa.generate_private_key(65537, 2048).public_key()
    published = RSAKey.import_key(key, {"kid": "key", "use": "sig"}).as_dict(private=False)
    (folder / "keys.json").write_text(json.dumps({"keys": [published]}))
    (folder / "settings.yaml").write_text(SETTINGS.format(folder=folder))
    password = folder / "password"
    password.write_text(PASSWORD)
    password.chmod(0o600)
    settings = ["--config", str(folder / "settings.yaml")]
    return [*settings, "--bootstrap-admin", ADMIN, "--bootstrap-admin-password-file", str(password)]


def log_in(broker: BrokerSubprocess, listener: str, folder: Path) -> bool:
    """Return whether a good login succeeds."""
    is_secure = listener == "SECURE_LOGIN"
    properties = {
        "bootstrap.servers": broker.listeners[listener],
        "security.protocol": "SASL_SSL" if is_secure else "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": ADMIN,
        "sasl.password": PASSWORD,
    }
    if is_secure:
        properties["ssl.ca.location"] = str(folder / "ca.pem")
    with Wire(properties) as wire:
        return len(wire.metadata().brokers) == 1


def defects(log: Path) -> list[str]:
    """Return the lines of the log that tell of a defect."""
    with log.open(errors="replace") as lines:
        return [line for line in lines if any(mark in line for mark in DEFECTS)]


def attack(broker: BrokerSubprocess, attacker: Attacker, garbage: Garbage, count: int) -> int:
    """Send the inputs; return by how many KiB the broker grew after the first tenth."""
    pid = broker.process.pid
    warm, cpu_before_s = resident_kib(pid), cpu_seconds(pid)
    started_s = told_s = time.monotonic()
    for number, one in enumerate(garbage.inputs(count)):
        if number == int(count * WARM_UP_SHARE):
            warm = resident_kib(pid)
        attacker.send(one)
        if time.monotonic() - told_s > TOLD_EVERY_S:
            told_s = time.monotonic()
            rate = number / (told_s - started_s)
            print(f"{number} inputs, {rate:.0f}/s, {resident_kib(pid)} KiB", file=sys.stderr)
    attacker.finish()
    seconds = time.monotonic() - started_s
    each_ms = [1000 * s / count for s in (cpu_seconds(pid) - cpu_before_s, time.process_time())]
    print(f"{count} inputs in {seconds:.0f} s ({count / seconds:.0f}/s)")
    print("processor time an input: {:.2f} ms broker, {:.2f} ms client".format(*each_ms))
    print(", ".join(f"{number} {what}" for what, number in sorted(attacker.outcomes.items())))
    end = resident_kib(pid)
    print(f"{warm} KiB of memory after a tenth, {end} KiB in the end")
    return end - warm


def main() -> int:
    """Send the garbage; return 1 if the broker did not keep the rule."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tls", type=float, default=0.1, help="share of broken handshakes")
    parser.add_argument("--handshakes", type=float, default=0.05, help="share after a good one")
    wanted = parser.parse_args()
    garbage = Garbage(wanted.seed, tls_share=wanted.tls, handshake_share=wanted.handshakes)
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = prepare(folder)
        with BrokerSubprocess(folder / "data", arguments=arguments, listener="PLAIN") as broker:
            pid, attacker = broker.process.pid, Attacker(broker)
            grown_kib = attack(broker, attacker, garbage, wanted.inputs)
            if grown_kib > GROWTH_MAX_KIB:
                problems.append(f"the broker grew by {grown_kib} KiB")
            if attacker.outcomes[NEVER_CLOSED]:
                problems.append(f"{attacker.outcomes[NEVER_CLOSED]} connections stayed open")
            for listener in ("LOGIN", "SECURE_LOGIN"):
                with contextlib.suppress(Exception):
                    if log_in(broker, listener, folder):
                        continue
                problems.append(f"a good login on {listener} failed")
            if broker.process.poll() is not None or broker.process.pid != pid:
                problems.append("the broker ended")
            problems += defects(broker.log_file)
    print("\n".join(problems) or "no defect, and good logins succeed")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
