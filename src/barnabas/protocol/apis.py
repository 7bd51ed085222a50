"""The message classes of each API key; a module is imported when it is first used."""

from functools import cache
from importlib import import_module
from typing import cast

from barnabas.protocol.message import ApiFacts, Message
from barnabas.protocol.messages.index_tables import APIS, OTHERS

__all__ = [
    "APIS",
    "KEYS",
    "OTHERS",
    "ApiFacts",
    "message_class",
    "request_class",
    "response_class",
]

MESSAGES = "barnabas.protocol.messages"

KEYS = {facts.request: key for key, facts in APIS.items()}
"""The API key of each request, by the name of its class: `KEYS["VoteRequest"]` is 52."""


def request_class(api_key: int) -> type[Message]:
    """Return the request of an API; KeyError if there is no such API."""
    facts = APIS[api_key]
    return message_class(facts.module, facts.request)


def response_class(api_key: int) -> type[Message]:
    """Return the response of an API; KeyError if there is no such API."""
    facts = APIS[api_key]
    return message_class(facts.module, facts.response)


@cache
def message_class(module: str, name: str) -> type[Message]:
    """Return a class by its module and name."""
    return cast("type[Message]", getattr(import_module(f"{MESSAGES}.{module}"), name))
