"""Logins in any order against a simple model: who is served, as whom, and until when.

The broker is the simulated one, with its real connections. A client connects, logs in with right
and wrong passwords, in time or too late, asks, and authenticates again, while users get other
passwords or are deleted. The model knows what the protocol promises, and nothing of how it is kept:

- A request is answered if and only if its connection has logged in and its session is not over.
- A login succeeds if and only if the password is that of the user at that moment.
- A client that fails is closed. To authenticate again it must use the same user and mechanism.
"""

from random import Random

import pytest

from barnabas.metadata.security_records import ScramCredentialRemoved
from barnabas.model.errors import ErrorCode
from barnabas.model.security_settings import SecuritySettings
from barnabas.protocol.message import Message
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.security.scram_client import ScramClient
from barnabas.security.scram_formulas import SCRAM_BY_NAME
from tests.support.examples import LONG
from tests.support.security.sasl_talk import ALL, PASSWORD, SaslTalk, credentials

SEEDS, STEPS = (400 if LONG else 6), 150
SESSION_MS = 5_000
LOGIN_MS = 10_000
"""How long a client has until it has logged in."""
AGAIN_MS = 1_000
DELAY_MS = 100
USERS = ("alice", "bob")
PASSWORDS = (PASSWORD, "another")


class Logins:
    """One client at a time, and the model of what it may do."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.talk = SaslTalk(SecuritySettings(reauthentication_ms=SESSION_MS))
        self.passwords: dict[str, str] = {"alice": PASSWORD}
        self.begin()

    def begin(self) -> None:
        self.is_open = True
        self.logged_in: tuple[str, str] | None = None
        """The user and the mechanism."""
        self.began_ms = self.now_ms
        self.ends_ms = 0

    @property
    def now_ms(self) -> int:
        return self.talk.edge.now_ms

    def say(self, request: Message, version: int) -> bytes | None:
        """Send a request; return the answer, which may take a moment, or None."""
        before = len(self.talk.answers)
        self.talk.send(request, version)
        if len(self.talk.answers) == before:
            self.talk.pass_time(DELAY_MS)
        return self.talk.answers[-1] if len(self.talk.answers) > before else None

    def told(self, token: bytes) -> bytes | None:
        """Send a token; return the broker's, or None where it refuses."""
        answer = self.say(SaslAuthenticateRequest(auth_bytes=token), 1)
        if answer is None:
            return None
        code = int.from_bytes(answer[4:6])
        assert code in (ErrorCode.NONE, ErrorCode.SASL_AUTHENTICATION_FAILED)
        if code:
            return None
        assert answer[6:8] == b"\xff\xff", "no error, no text"
        size = int.from_bytes(answer[8:12])
        return answer[12 : 12 + size]

    def dialogue(self, user: str, password: str, mechanism: str) -> bool:
        """Log in as clients do; return whether that succeeded."""
        if self.say(SaslHandshakeRequest(mechanism=mechanism), 1) is None:
            return False
        if mechanism == "PLAIN":
            return self.told(f"\0{user}\0{password}".encode()) is not None
        client = ScramClient(SCRAM_BY_NAME[mechanism], user, password, b"client-nonce")
        first = self.told(client.first())
        if first is None:
            return False
        last = self.told(client.final(first))
        if last is None:
            return False
        client.check(last)  # the broker proves that it knows the user, too
        return True

    # --- what may happen ---

    def connect(self) -> None:
        self.talk.reconnect()
        self.begin()

    def log_in(self) -> None:
        """Log in, mostly as one should."""
        user, mechanism = self.rng.choice(USERS), self.rng.choice(ALL)
        if self.logged_in is not None:
            self.wait(AGAIN_MS)
            if self.rng.random() < 0.7:
                user = self.logged_in[0]
            if self.rng.random() < 0.9:
                mechanism = self.logged_in[1]
        known = self.passwords.get(user)
        is_careful = known is not None and self.rng.random() < 0.8
        password = known if known is not None and is_careful else self.rng.choice(PASSWORDS)
        if not self.is_open:
            return
        is_right = known == password
        is_same = self.logged_in in (None, (user, mechanism))
        succeeded = self.dialogue(user, password, mechanism)
        assert succeeded == (is_right and is_same), (user, mechanism, self.logged_in)
        self.is_open = succeeded
        if succeeded:
            self.logged_in = user, mechanism
            self.ends_ms = self.now_ms + SESSION_MS
            assert self.talk.principal == f"User:{user}"

    def ask(self) -> None:
        answer = self.say(MetadataRequest(topics=[]), 9) if self.is_open else None
        is_served = self.is_open and self.logged_in is not None and self.now_ms < self.ends_ms
        assert (answer is not None) == is_served, (self.logged_in, self.now_ms, self.ends_ms)
        self.is_open = is_served

    def wait(self, duration_ms: int = 0) -> None:
        self.talk.pass_time(duration_ms or self.rng.choice([1, 500, 1_500, 4_000]))
        if self.logged_in is None and self.now_ms - self.began_ms >= LOGIN_MS:
            self.is_open = False

    def set_password(self) -> None:
        user, password = self.rng.choice(USERS), self.rng.choice(PASSWORDS)
        self.passwords[user] = password
        self.talk.commit(credentials(user, password))

    def delete(self) -> None:
        user = self.rng.choice(USERS)
        names = SCRAM_BY_NAME if self.passwords.pop(user, None) is not None else ()
        self.talk.commit([ScramCredentialRemoved(user=user, mechanism=name) for name in names])

    def step(self) -> None:
        """Do one of these, and compare."""
        actions = {
            self.connect: 1 if self.is_open else 8,
            self.log_in: 4,
            self.ask: 3,
            self.wait: 3,
            self.set_password: 2,
            self.delete: 1,
        }
        (action,) = self.rng.choices(list(actions), list(actions.values()))
        action()
        assert self.talk.connection.closed is not self.is_open
        assert not [each for each in self.talk.problems if isinstance(each, Exception)]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_logins(seed: int) -> None:
    logins = Logins(Random(seed))
    for _ in range(STEPS):
        logins.step()
