"""The settings of the audit log."""

import pytest

from barnabas import config
from barnabas.model.errors import ConfigError


@pytest.mark.parametrize(
    ("topic", "authorizer", "problem"),
    [
        ("audit", "none", "needs security.authorizer: acl"),
        ("audit lines", "acl", "letters, digits"),
        ("__consumer_offsets", "acl", "choose another name"),
        ("__cluster_metadata", "acl", "choose another name"),
    ],
)
def test_a_topic_that_cannot_be_the_audit_topic(topic: str, authorizer: str, problem: str) -> None:
    flags = {"security.audit_topic": topic, "security.authorizer": authorizer}
    with pytest.raises(ConfigError, match=problem):
        config.load(None, {}, flags)


def test_a_topic_is_enough_for_an_audit_log() -> None:
    flags = {"security.audit_topic": "audit", "security.authorizer": "acl"}
    security = config.load(None, {}, flags).security
    assert (security.audit_topic, security.audit_file) == ("audit", None)
