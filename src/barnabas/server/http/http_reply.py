"""What a page answers, and the bytes of its head.

A page is a generator, so that a long answer does not hold up the event loop. While it works out its
answer it yields None, to go on in a later turn of the loop, or a `Pending`, to go on once that is
done. It returns a `Reply`. The body of a reply is a text, or many pieces of one, each of which is
made in a turn of its own.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from barnabas.model.pending import Pending

JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer."""

    status: int = 200
    content_type: str = TEXT
    body: str | Iterator[str] = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Further header fields."""


Page = Generator[Pending[Any] | None, Any, Reply]


def head_of(reply: Reply, framing: Mapping[str, str], *, keeps_alive: bool) -> bytes:
    """Return the head of a response; `framing` says how long the body is and how it is coded."""
    fields = {
        "Content-Type": reply.content_type,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        **framing,
        **reply.fields,
        "Connection": "keep-alive" if keeps_alive else "close",
    }
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def refusal(status: int, problem: str) -> Reply:
    """Return the answer to a request that is refused."""
    allowed = {"Allow": "GET, HEAD"} if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
    return Reply(status=status, body=f"{problem}\n", fields=allowed)
