"""SCRAM against the vectors of the RFCs, and every check that a server must make."""

import hashlib
from collections.abc import Callable

import pytest

from barnabas.metadata.security_image import SecurityImage
from barnabas.model.steps import finish
from barnabas.model.timers import Timers
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.scram import Credentials, ScramExchange
from barnabas.security.scram_client import ScramClient
from barnabas.security.scram_formulas import (
    SCRAM_BY_NAME,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramMechanism,
    as_base64,
    client_key,
    credential,
    from_base64,
    hashed,
    keys_of,
    read_name,
    salt_password,
    sign,
    write_name,
    xor,
)
from barnabas.security.token_credentials import TokenCredentials
from barnabas.security.token_signing import TokenSigner

ALICE, PASSWORD = "alice", "correct horse"
NONCE = b"fyko+d2lbbFgONRv9qkxdawL"
MECHANISMS = pytest.mark.parametrize("mechanism", SCRAM_BY_NAME.values(), ids=lambda m: m.name)


def random_bytes(count: int) -> bytes:
    return bytes(range(count))


class Server:
    """The server's end, with some users."""

    def __init__(self, mechanism: ScramMechanism, *users: str, iterations: int = 4096) -> None:
        image = SecurityImage(secret="5e" * 32)
        for user in users or (ALICE,):
            image.replay(credential(mechanism, user, PASSWORD, b"salt of " * 4, iterations))
        self.mechanism, self.image = mechanism, image
        self.credentials = Credentials(lambda: image, random_bytes)
        self.tokens = TokenCredentials(TokenSigner(), lambda: image, Timers())
        self.exchange = ScramExchange(mechanism, self.credentials, self.tokens, random_bytes)

    def reply(self, token: bytes) -> bytes:
        return finish(self.exchange.reply(token)).token

    def first(self, message: bytes = b"n,,n=alice,r=" + NONCE) -> bytes:
        return self.reply(message)


def dialogue(server: Server, user: str, password: str) -> str:
    """Authenticate with our own client; return the principal."""
    client = ScramClient(server.mechanism, user, password, NONCE)
    answer = server.reply(client.first())
    last = finish(server.exchange.reply(client.final(answer)))
    client.check(last.token)
    assert last.proven is not None
    return str(last.proven.principal)


def final_of(server: Server, answer: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return the last message of a client that knows the password and signs something else."""
    mechanism = server.mechanism
    salt, iterations = answer.split(b",")[1][2:], int(answer.split(b",")[2][2:])
    salted = salt_password(mechanism, PASSWORD.encode(), from_base64(salt), iterations)
    key = client_key(mechanism, salted)
    signed = change(b"c=biws," + answer.split(b",")[0])
    message = b",".join((b"n=alice,r=" + NONCE, answer, signed))
    proof = xor(key, sign(mechanism, hashed(mechanism, key), message))
    return signed + b",p=" + as_base64(proof)


def test_the_vector_of_rfc_7677() -> None:
    client = ScramClient(SCRAM_SHA_256, "user", "pencil", b"rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = client.final(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    client.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(AuthenticationFailedError):
        client.check(b"v=" + as_base64(bytes(32)))


def test_the_keys_of_rfc_7677() -> None:
    salted = salt_password(SCRAM_SHA_256, b"pencil", from_base64(b"W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    keys = keys_of(SCRAM_SHA_256, salted)
    assert as_base64(keys.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert as_base64(keys.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


@MECHANISMS
@pytest.mark.parametrize("user", [ALICE, "a,b=c", "=2C", "Jürgen", "名前", "x" * 300])
def test_a_user_authenticates(mechanism: ScramMechanism, user: str) -> None:
    assert dialogue(Server(mechanism, user), user, PASSWORD) == f"User:{user}"


@MECHANISMS
def test_more_iterations(mechanism: ScramMechanism) -> None:
    assert dialogue(Server(mechanism, iterations=16384), ALICE, PASSWORD) == "User:alice"


def test_the_credential_of_another_mechanism_does_not_count() -> None:
    server = Server(SCRAM_SHA_256)
    exchange = ScramExchange(SCRAM_SHA_512, server.credentials, server.tokens, random_bytes)
    server.mechanism, server.exchange = SCRAM_SHA_512, exchange
    with pytest.raises(AuthenticationFailedError):
        dialogue(server, ALICE, PASSWORD)


@MECHANISMS
@pytest.mark.parametrize(("user", "password"), [(ALICE, "wrong"), ("mallory", PASSWORD)])
def test_wrong_credentials_fail_with_the_last_message_alone(
    mechanism: ScramMechanism, user: str, password: str
) -> None:
    server = Server(mechanism)
    client = ScramClient(mechanism, user, password, NONCE)
    final = client.final(server.reply(client.first()))
    with pytest.raises(AuthenticationFailedError, match="no such user, or another password"):
        server.reply(final)


@MECHANISMS
def test_an_unknown_user_gets_the_same_salt_each_time(mechanism: ScramMechanism) -> None:
    first = b"n,,n=mallory,r=" + NONCE
    answers = {Server(mechanism).reply(first) for _ in range(3)}
    assert len(answers) == 1
    known = Server(mechanism).first().split(b",")
    unknown = answers.pop().split(b",")
    assert [len(part) for part in unknown] == [len(part) for part in known]
    assert unknown[2] == known[2]
    other = Server(mechanism).reply(b"n,,n=trudy,r=" + NONCE).split(b",")
    assert other[1] != unknown[1]


@MECHANISMS
def test_an_imagined_user_cannot_be_proved(mechanism: ScramMechanism) -> None:
    """Even a client that knows the secret, and with it the imagined keys, is refused."""
    server = Server(mechanism)
    verifier = server.credentials.find("mallory", mechanism)
    assert not verifier.exists
    answer = server.reply(b"n,,n=mallory,r=" + NONCE)
    signed = b"c=biws," + answer.split(b",")[0]
    message = b",".join((b"n=mallory,r=" + NONCE, answer, signed))
    proof = sign(mechanism, verifier.keys.stored_key, message)
    with pytest.raises(AuthenticationFailedError):
        server.reply(signed + b",p=" + as_base64(proof))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda signed: signed[:-1], id="shorter nonce"),
        pytest.param(lambda signed: signed + b"x", id="longer nonce"),
        pytest.param(lambda _: b"c=biws,r=" + NONCE, id="the client's half of the nonce"),
        pytest.param(lambda signed: signed.replace(b"fyko", b"FYKO"), id="another nonce"),
        pytest.param(lambda _: b"c=biws,r=" + NONCE + NONCE, id="no part of the broker"),
        pytest.param(lambda signed: signed.replace(b"r=", b"r=x" + NONCE[1:]), id="other prefix"),
        pytest.param(lambda signed: signed.replace(b"biws", b"eSws"), id="another header"),
        pytest.param(lambda signed: signed.replace(b"biws", b"cD10bHMsLA=="), id="binding"),
        pytest.param(lambda signed: signed.replace(b"biws", b"bixhPWJvYiw="), id="another user"),
    ],
)
def test_a_signed_message_that_is_not_this_dialogue_is_refused(
    change: Callable[[bytes], bytes],
) -> None:
    """The proof is right for what the message says: only the checks refuse it (CVE-2024-56128)."""
    server = Server(SCRAM_SHA_256)
    final = final_of(server, server.first(), change)
    with pytest.raises(AuthenticationFailedError, match=r"another nonce|another GS2 header"):
        server.reply(final)


def test_the_unchanged_message_is_accepted() -> None:
    server = Server(SCRAM_SHA_256)
    final = final_of(server, server.first(), lambda signed: signed)
    assert server.reply(final).startswith(b"v=")


def test_the_doubled_nonce_of_old_librdkafka_is_accepted() -> None:
    """librdkafka before 2.6.1 puts the client's part of the nonce in front once more."""
    server = Server(SCRAM_SHA_256)
    final = final_of(server, server.first(), lambda signed: signed.replace(b"r=", b"r=" + NONCE))
    assert server.reply(final).startswith(b"v=")


def test_a_client_that_supports_binding_and_found_none_is_accepted() -> None:
    server = Server(SCRAM_SHA_256)
    answer = server.first(b"y,,n=alice,r=" + NONCE)
    final = final_of(server, answer, lambda signed: signed.replace(b"biws", b"eSws"))
    assert server.reply(final).startswith(b"v=")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,",
        b"n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"x,,n=alice,r=abc",
        b"n,,m=must,n=alice,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=a b",
        b"n,,n=alice,r=a\x00b",
        b"n,,n=al=ice,r=abc",
        b"n,,n=al=2cice,r=abc",
        b"n,,n=\xff\xfe,r=abc",
        b"n,,n=alice\x00,r=abc",
        b"n,a=bob,n=alice,r=abc",
        b"n,a==41,n=alice,r=abc",
        b"n,,n=alice,r=abc,tokenauth=true",
        b"n,,n=alice,r=abc,",
        b"\x00" * 1000,
    ],
)
def test_first_messages_that_are_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailedError):
        Server(SCRAM_SHA_256).reply(message)


@pytest.mark.parametrize(
    "make",
    [
        lambda final: b"",
        lambda final: final.rpartition(b",")[0],
        lambda final: final + b"=",
        lambda final: final[:-4],
        lambda final: final[:-2] + b"!=",
        lambda final: final.rpartition(b"p=")[0] + b"p=" + as_base64(bytes(32)),
        lambda final: final.rpartition(b"p=")[0] + b"p=" + as_base64(b"\x01"),
        lambda final: final.replace(b"c=biws,", b""),
        lambda final: final + b",x=y",
        lambda final: b"p=" + final,
    ],
)
def test_last_messages_that_are_refused(make: Callable[[bytes], bytes]) -> None:
    server = Server(SCRAM_SHA_256)
    final = final_of(server, server.first(), lambda signed: signed)
    with pytest.raises(AuthenticationFailedError):
        server.reply(make(final))


@pytest.mark.parametrize("name", ["a,b", "=", "=2C", "=3D,", "ü=,", "plain"])
def test_names_are_escaped(name: str) -> None:
    written = write_name(name)
    assert b"," not in written
    assert read_name(written) == name


@pytest.mark.parametrize(
    "answer",
    [
        b"r=%s,s=c2FsdA==,i=4096" % NONCE,
        b"r=other-nonce,s=c2FsdA==,i=4096",
        b"r=%sx,s=c2FsdA==,i=1" % NONCE,
        b"r=%sx,s=c2FsdA==,i=999999999" % NONCE,
        b"r=%sx,s=!,i=4096" % NONCE,
        b"e=other-error",
    ],
)
def test_a_client_refuses_a_server_that_cheats(answer: bytes) -> None:
    client = ScramClient(SCRAM_SHA_256, ALICE, PASSWORD, NONCE)
    with pytest.raises(AuthenticationFailedError):
        client.final(answer)


def test_secrets_do_not_show_in_what_is_logged() -> None:
    made = credential(SCRAM_SHA_256, ALICE, PASSWORD, b"s" * 16, 4096)
    image = SecurityImage(secret="5ec2e7" * 10)
    image.replay(made)
    verifier = Credentials(lambda: image, random_bytes).find(ALICE, SCRAM_SHA_256)
    text = f"{made!r} {image!r} {verifier!r} {made}"
    digest = hashlib.sha256(b"").hexdigest()
    for secret in (made.stored_key, made.server_key, image.secret, digest):
        assert secret not in text
    assert repr(bytes.fromhex(made.stored_key)) not in text
