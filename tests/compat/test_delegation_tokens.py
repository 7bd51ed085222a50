"""Delegation tokens with Kafka's own tool, Java clients, and those that cannot send them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from barnabas.admin import token_admin
from barnabas.admin.token_admin import Token
from barnabas.testing.waiting import eventually
from tests.support.loads.kafka_tools import Jvm, tools
from tests.support.security.sasl_broker import SaslBroker, properties, sasl_cluster
from tests.support.security.token_clients import ROOT, add_user, as_user, java_file, token_security

pytestmark = pytest.mark.compat

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
COLUMNS = 8


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    folder = tmp_path_factory.mktemp("secret")
    with SaslBroker(security=token_security(folder)) as running:
        for name in ("alice", "bob", ROOT):
            add_user(running.bootstrap, name)
        yield running


@pytest.fixture(scope="module")
def jvm(broker: SaslBroker, jars: str) -> Iterator[Jvm]:
    with tools(RUN_TOOLS, jars, broker.bootstrap) as running:
        yield running


class Tool:
    """kafka-delegation-tokens as one user."""

    def __init__(self, jvm: Jvm, folder: Path, user: str) -> None:
        self._jvm = jvm
        self._config = str(java_file(folder, user, user))

    def run(self, *words: str) -> tuple[int, str]:
        """Run the tool; return its exit code and output."""
        return self._jvm.run(TOKENS, "--command-config", self._config, *words)

    def create(self, *words: str) -> dict[str, str]:
        """Create a token and return the row that the tool prints."""
        code, text = self.run("--create", "--max-life-time-period", "-1", *words)
        assert code == 0, text
        return rows(text)[0]

    def describe(self) -> list[dict[str, str]]:
        """Return the rows of alice's tokens. Without an owner the tool asks for no tokens."""
        code, text = self.run("--describe", "--owner-principal", "User:alice")
        assert code == 0, text
        return rows(text)


def rows(text: str) -> list[dict[str, str]]:
    """Parse the tool's table. A token has an HMAC in base64 in the second column."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= COLUMNS - 1 and len(words[0]) == 22:
            found.append({"id": words[0], "hmac": words[1], "owner": words[2], "line": line})
    return found


def list_topics(jvm: Jvm, file: Path) -> tuple[int, str]:
    words = ("--list", "--command-config", str(file))
    return jvm.run(TOPICS, *words)


def test_the_life_of_a_token_with_kafkas_tool(jvm: Jvm, tmp_path: Path) -> None:
    alice, bob = Tool(jvm, tmp_path, "alice"), Tool(jvm, tmp_path, "bob")
    made = alice.create("--renewer-principal", "User:bob")
    assert (made["owner"], "User:bob" in made["line"]) == ("User:alice", True)
    assert made in alice.describe()
    assert made in bob.describe()
    code, text = bob.run("--renew", "--renew-time-period", "60000", "--hmac", made["hmac"])
    assert (code, "Completed renew operation" in text) == (0, True), text
    (renewed,) = [row for row in alice.describe() if row["id"] == made["id"]]
    assert renewed["line"] != made["line"]
    file = java_file(tmp_path, made["id"], made["hmac"], token=True)
    assert list_topics(jvm, file)[0] == 0
    code, text = alice.run("--expire", "--expiry-time-period", "-1", "--hmac", made["hmac"])
    assert (code, "Completed expire operation" in text) == (0, True), text
    assert made["id"] not in {row["id"] for row in alice.describe()}
    code, text = list_topics(jvm, file)
    assert (code, "Authentication failed" in text) == (1, True), text


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_java_client_with_a_token_has_its_owners_rights(
    broker: SaslBroker, jvm: Jvm, tmp_path: Path, mechanism: str
) -> None:
    made = Tool(jvm, tmp_path, "alice").create()
    file = str(java_file(tmp_path, made["id"], made["hmac"], mechanism=mechanism, token=True))
    name = f"of-{mechanism.lower()}"
    create = ("--create", "--topic", name, "--partitions", "1", "--command-config", file)
    code, text = jvm.run(TOPICS, *create)
    assert (code, "TOPIC_AUTHORIZATION_FAILED" in text) == (1, True), text
    admin = str(java_file(tmp_path, ROOT, ROOT))
    allowed = ("--add", "--allow-principal", "User:alice", "--operation", "All", "--topic", name)
    assert jvm.run(ACLS, "--command-config", admin, *allowed).code == 0
    code, text = jvm.run(TOPICS, *create)
    assert code == 0, text


def test_a_client_with_a_token_manages_no_tokens(jvm: Jvm, tmp_path: Path) -> None:
    made = Tool(jvm, tmp_path, "alice").create()
    file = str(java_file(tmp_path, made["id"], made["hmac"], token=True))
    period = ("--max-life-time-period", "-1")
    for words in (("--create", *period), ("--describe",)):
        code, text = jvm.run(TOKENS, "--command-config", file, *words)
        assert (code, "Delegation Token requests are not allowed" in text) == (1, True), text


def test_refusals_are_those_that_the_tool_knows(jvm: Jvm, tmp_path: Path) -> None:
    alice, bob = Tool(jvm, tmp_path, "alice"), Tool(jvm, tmp_path, "bob")
    made = alice.create()
    code, text = bob.run("--renew", "--renew-time-period", "-1", "--hmac", made["hmac"])
    assert (code, "DelegationTokenOwnerMismatchException" in text) == (1, True), text
    code, text = bob.run("--expire", "--expiry-time-period", "-1", "--hmac", "AAAA")
    assert (code, "DelegationTokenNotFoundException" in text) == (1, True), text
    for_another = ("--create", "--max-life-time-period", "-1", "--owner-principal", "User:bob")
    code, text = alice.run(*for_another)
    assert (code, "DelegationTokenAuthorizationException" in text) == (1, True), text


def test_acls_of_tokens_and_users_with_kafkas_tool(
    broker: SaslBroker, jvm: Jvm, tmp_path: Path
) -> None:
    admin = str(java_file(tmp_path, ROOT, ROOT))
    words = ("--add", "--allow-principal", "User:bob", "--operation", "CreateTokens")
    added = jvm.run(ACLS, "--command-config", admin, *words, "--user-principal", "User:alice")
    assert added.code == 0, added.output
    bob = Tool(jvm, tmp_path, "bob")
    made = eventually(lambda: bob.create("--owner-principal", "User:alice"))
    assert made["owner"] == "User:alice"
    assert made["id"] not in {row["id"] for row in bob.describe()}
    words = ("--add", "--allow-principal", "User:bob", "--operation", "Describe")
    added = jvm.run(ACLS, "--command-config", admin, *words, "--delegation-token", made["id"])
    assert added.code == 0, added.output
    assert made["id"] in {row["id"] for row in bob.describe()}


def test_librdkafka_cannot_log_in_with_a_token(broker: SaslBroker) -> None:
    """It has no way to send `tokenauth=true`; without it the id is the name of no user."""
    with as_user(broker.bootstrap, "alice") as wire:
        made = token_admin.create(wire, None, ())
    client = AdminClient(properties(broker.bootstrap, user=made.token_id, password=made.password))
    with pytest.raises(KafkaException):
        client.list_topics(timeout=5.0)


def test_a_token_of_one_broker_is_one_of_the_cluster(tmp_path: Path, jars: str) -> None:
    security = token_security(tmp_path)
    with sasl_cluster(tmp_path, security) as brokers:
        first, *others = brokers
        add_user(first.bootstrap, "alice")
        made: list[Token] = []
        for each in brokers:
            with as_user(each.bootstrap, "alice") as wire:
                made.append(token_admin.create(wire, None, ()))
        files = [java_file(tmp_path, token.token_id, token.password, token=True) for token in made]
        with tools(RUN_TOOLS, jars, others[0].bootstrap) as jvm:
            assert [list_topics(jvm, file)[0] for file in files] == [0, 0, 0]
