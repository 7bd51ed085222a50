"""Rules that make principals of names in certificates, with the examples of Kafka's docs."""

import pytest

from barnabas.security.principal_mapping import MappingError, PrincipalMapping, split_rules

KAFKA = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, "
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L, "
    r"DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "principal"),
    [
        ("CN=kafka-admin,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "kafka-admin"),
        ("CN=User1,OU=Sales,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "user1@sales"),
        ("cn=Test.User,O=Unknown", "test.user"),
        ("O=Unknown,OU=Sales", "O=Unknown,OU=Sales"),
    ],
)
def test_the_first_rule_that_matches_decides(name: str, principal: str) -> None:
    assert PrincipalMapping(split_rules(KAFKA)).principal_of(name) == principal


@pytest.mark.parametrize(
    ("rule", "name", "principal"),
    [
        ("DEFAULT", "CN=a", "CN=a"),
        ("RULE:CN=(.*)/$1/U", "CN=Ämter", "ÄMTER"),
        ("RULE:CN=(.*)/$1/", "OU=x,CN=a", None),  # the whole name must match
        ("RULE:CN=a/x/", "CN=ab", None),
        ("RULE:(CN)=(x)?.*/$2-$1/", "CN=a", "-CN"),  # a group that matched nothing
        ("RULE:CN=.*/$1/", "CN=a", "$1"),  # there is no such group
        ("RULE:.*/admin/", "CN=a", "admin"),
        (r"RULE:CN=(.*)\/x/$1\/y/", "CN=a/x", "a/y"),  # slashes within a rule
        (r"RULE:CN=(.*)/\$$1/", "CN=a", "$a"),
    ],
)
def test_one_rule(rule: str, name: str, principal: str | None) -> None:
    assert PrincipalMapping([rule]).principal_of(name) == principal


def test_without_a_match_there_is_no_principal() -> None:
    mapping = PrincipalMapping(["RULE:CN=a/x/", "RULE:CN=b/y/"])
    assert [mapping.principal_of(f"CN={each}") for each in "abc"] == ["x", "y", None]


def test_no_rules_are_the_default() -> None:
    assert PrincipalMapping([]).principal_of("CN=a") == "CN=a"


@pytest.mark.parametrize(
    "text",
    ["default", "RULE:a/b", "RULE:a/b/X", "RULE:a/b/L,nonsense", "RULE:(/b/", "RULE:(?=a)/b/"],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(MappingError):
        PrincipalMapping(split_rules(text))


def test_a_hostile_name_is_matched_at_once() -> None:
    rule = r"RULE:^CN=(([a-z])+.)+[A-Z]([a-z])+,.*$/$1/"  # exponential with backtracking
    assert PrincipalMapping([rule]).principal_of("CN=" + "a" * 10_000) is None
