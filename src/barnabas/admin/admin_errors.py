"""Errors of requests to a cluster, with messages that say what to change."""

ADVICE_BY_NAME = {
    "TOPIC_AUTHORIZATION_FAILED": "ask for an ACL on the topic",
    "GROUP_AUTHORIZATION_FAILED": "ask for an ACL on the group",
    "CLUSTER_AUTHORIZATION_FAILED": "ask for an ACL on the cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "ask for an ACL on the transactional id",
    "_AUTHENTICATION": "check -X sasl.mechanism, sasl.username and sasl.password",
    "_SSL": "check -X security.protocol and the certificates",
    "_UNSUPPORTED_FEATURE": "this broker does not support the request",
    "UNSUPPORTED_VERSION": "this broker does not support the request",
    "MSG_SIZE_TOO_LARGE": "send less, or raise max.message.bytes on the topic",
}


class AdminError(Exception):
    """A request to a cluster failed; the message says what to change."""


def no_broker(bootstrap: str) -> AdminError:
    """Return the error for an address at which no broker answers."""
    return AdminError(
        f"No broker answered at {bootstrap}; start one with `barnabas serve` or pass --bootstrap"
    )


def no_topic(name: str) -> AdminError:
    """Return the error for a topic that does not exist."""
    return AdminError(
        f"There is no topic {name}; `barnabas topic list` lists all topics, "
        f"`barnabas topic create {name}` creates it"
    )


def kafka_sentence(carried: object) -> str:
    """Return the message for a KafkaError, with advice if there is any."""
    name = carried.name() if hasattr(carried, "name") else ""
    text = carried.str() if hasattr(carried, "str") else str(carried)
    advice = ADVICE_BY_NAME.get(name)
    return f"{text}; {advice}" if advice else str(text)
