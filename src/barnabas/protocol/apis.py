"""From an API key to its message classes, importing a module only when it is asked for."""

from functools import cache
from importlib import import_module
from typing import cast

from barnabas.protocol.message import ApiFacts, Message
from barnabas.protocol.messages.index_tables import APIS, OTHERS

__all__ = ["APIS", "OTHERS", "ApiFacts", "message_class", "request_class", "response_class"]

MESSAGES = "barnabas.protocol.messages"


def request_class(api_key: int) -> type[Message]:
    """Return the request of an API; KeyError where there is no such API."""
    facts = APIS[api_key]
    return message_class(facts.module, facts.request)


def response_class(api_key: int) -> type[Message]:
    """Return the response of an API; KeyError where there is no such API."""
    facts = APIS[api_key]
    return message_class(facts.module, facts.response)


@cache
def message_class(module: str, name: str) -> type[Message]:
    """Return a class by its module and name."""
    return cast("type[Message]", getattr(import_module(f"{MESSAGES}.{module}"), name))
