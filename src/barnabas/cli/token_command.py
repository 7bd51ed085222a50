"""`barnabas token`: delegation tokens, with which a client authenticates as their owner (KIP-48).

The HMAC of a token is its secret. Only `create` prints it, once. No command takes it as an
argument, since other users of the machine can see the arguments of processes.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from barnabas.admin.token_admin import Token
    from barnabas.wire.cluster_wire import Wire

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

TokenId = Annotated[str, typer.Argument(metavar="ID", help="The id of the token.")]


@app.command(epilog="Example: barnabas token create --renewer User:scheduler --max-lifetime 2d")
def create(
    owner: Annotated[
        str | None,
        typer.Option(metavar="PRINCIPAL", help="Whose token it is, as User:alice; default: yours."),
    ] = None,
    renewer: Annotated[
        list[str] | None,
        typer.Option(metavar="PRINCIPAL", help="Who else may renew it; may be repeated."),
    ] = None,
    max_lifetime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long it can be renewed; default: as long as can be"),
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Create a token, and print its HMAC, which is the password of a client that uses it."""
    from barnabas.admin import token_admin

    lifetime_ms = token_admin.LONGEST_MS
    if max_lifetime is not None:
        lifetime_ms = max(1, parse_duration_ms(max_lifetime, "--max-lifetime"))
    with _open(bootstrap, properties) as wire:
        made = token_admin.create(wire, owner, renewer or (), lifetime_ms)
    if as_json:
        print_json({**_facts(made), "hmac": made.password})
        return
    say(f"Created token {made.token_id} of {made.owner}, valid until {_moment(made.expires_ms)}")
    say(f"HMAC: {made.password}")
    say("Keep it as a password; it is not shown again.")


@app.command("list", epilog="Example: barnabas token list --owner User:alice")
def list_tokens(
    owner: Annotated[
        list[str] | None,
        typer.Option(metavar="PRINCIPAL", help="Only tokens of these; default: all you may see."),
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List tokens: yours, those that you may renew, and those that you may describe."""
    from barnabas.admin.token_admin import tokens

    with _open(bootstrap, properties) as wire:
        found = tokens(wire, owner)
    if as_json:
        print_json([_facts(token) for token in found])
        return
    rows = [
        (
            token.token_id,
            token.owner,
            ", ".join(token.renewers),
            _moment(token.expires_ms),
            _moment(token.ends_ms),
        )
        for token in found
    ]
    print_table(("TOKEN", "OWNER", "RENEWERS", "EXPIRES", "ENDS"), rows)


@app.command(epilog="Example: barnabas token renew n6NiqpHBRRGCnXxVOJQKhQ --period 12h")
def renew(
    token_id: TokenId,
    period: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="For how long from now; default: as long as can be."),
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Renew a token. Only its owner and its renewers may."""
    from barnabas.admin import token_admin

    period_ms = token_admin.LONGEST_MS
    if period is not None:
        period_ms = max(1, parse_duration_ms(period, "--period"))
    with _open(bootstrap, properties) as wire:
        expires_ms = token_admin.renew(wire, token_id, period_ms)
    _say_until(token_id, expires_ms, as_json=as_json)


@app.command(epilog="Example: barnabas token expire n6NiqpHBRRGCnXxVOJQKhQ --after 10m")
def expire(
    token_id: TokenId,
    after: Annotated[
        str | None, typer.Option(metavar="TIME", help="In how long; default: at once.")
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Make a token expire. Connections that authenticated with it end when they would have."""
    from barnabas.admin import token_admin

    period_ms = token_admin.AT_ONCE_MS
    if after is not None:
        period_ms = parse_duration_ms(after, "--after")
    with _open(bootstrap, properties) as wire:
        expires_ms = token_admin.expire(wire, token_id, period_ms)
    if after is not None or as_json:
        _say_until(token_id, expires_ms, as_json=as_json)
    else:
        say(f"Token {token_id} has expired")


def _open(bootstrap: str, properties: list[str] | None) -> "Wire":
    from barnabas.admin.inspection import open_wire

    return open_wire(bootstrap, properties)


def _say_until(token_id: str, expires_ms: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"token_id": token_id, "expires_ms": expires_ms})
    else:
        say(f"Token {token_id} is valid until {_moment(expires_ms)}")


def _moment(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="seconds")


def _facts(token: "Token") -> dict[str, object]:
    """Return a token for scripts, without its HMAC."""
    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "ends_ms": token.ends_ms,
    }
