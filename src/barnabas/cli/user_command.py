"""`barnabas user`: users and their passwords.

A password is never an argument, since other users of the machine can see the arguments of
processes. It comes from a prompt, a file, or an environment variable, and it is never printed.
"""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from barnabas.wire.cluster_wire import Wire

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

PASSWORD_VARIABLE = "BARNABAS_USER_PASSWORD"  # noqa: S105 - the name of a variable
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user.")]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"A file with the password; without it, {PASSWORD_VARIABLE} or a prompt.",
    ),
]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option("--mechanism", help="SCRAM-SHA-512 or SCRAM-SHA-256; default: both."),
]
Iterations = Annotated[
    int, typer.Option(min=4096, max=16384, help="How costly it is to guess the password.")
]


@app.command(epilog="Example: barnabas user create alice --password-file alice.password")
def create(
    name: Name,
    password_file: PasswordFile = None,
    mechanism: Mechanisms = None,
    iterations: Iterations = 4096,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Create a user; its password is valid for PLAIN and SCRAM."""
    from barnabas.admin.access.users import find, set_password

    chosen = _chosen(mechanism)
    with _open(bootstrap, properties) as wire:
        if find(wire, name) is not None:
            raise CommandError(
                f"There is a user {name}; `barnabas user password {name}` changes the password"
            )
        set_password(wire, name, _password(name, password_file), chosen, iterations)
    say(f"Created user {name}")


@app.command("list", epilog="Example: barnabas user list")
def list_users(
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List the users and their mechanisms."""
    from barnabas.admin.access.users import users

    with _open(bootstrap, properties) as wire:
        found = users(wire)
    if as_json:
        print_json([asdict(user) for user in found])
        return
    rows = [(user.name, ", ".join(user.mechanisms), user.iterations) for user in found]
    print_table(("USER", "MECHANISMS", "ITERATIONS"), rows)


@app.command(epilog="Example: barnabas user delete alice")
def delete(
    name: Name,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Delete a user. Its open connections, and its ACLs and quotas, stay."""
    from barnabas.admin.access import users

    with _open(bootstrap, properties) as wire:
        found = users.find(wire, name)
        if found is None:
            raise CommandError(f"There is no user {name}; `barnabas user list` lists all users")
        users.delete(wire, name, found.mechanisms)
    say(f"Deleted user {name}")


@app.command(epilog="Example: barnabas user password alice")
def password(
    name: Name,
    password_file: PasswordFile = None,
    iterations: Iterations = 4096,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Change a user's password, for all mechanisms that it has."""
    from barnabas.admin.access.users import find, set_password

    with _open(bootstrap, properties) as wire:
        found = find(wire, name)
        if found is None:
            raise CommandError(f"There is no user {name}; `barnabas user create {name}` creates it")
        set_password(wire, name, _password(name, password_file), found.mechanisms, iterations)
    say(f"Changed the password of user {name}")


def _open(bootstrap: str, properties: list[str] | None) -> "Wire":
    from barnabas.admin.inspection import open_wire

    return open_wire(bootstrap, properties)


def _chosen(mechanisms: list[str] | None) -> list[str]:
    chosen = [each.upper() for each in mechanisms or MECHANISMS]
    unknown = [each for each in chosen if each not in MECHANISMS]
    if unknown:
        raise CommandError(
            f"There is no mechanism {unknown[0]} with stored passwords; use {MECHANISMS[0]} or "
            f"{MECHANISMS[1]} (PLAIN takes the password of either)"
        )
    return list(dict.fromkeys(chosen))


def _password(user: str, file: Path | None) -> str:
    """Return the password, without the end of its line."""
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise CommandError(f"{file} is not UTF-8; save the password as such") from None
    elif (variable := os.environ.get(PASSWORD_VARIABLE)) is not None:
        text = variable
    elif sys.stdin.isatty():
        text = typer.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True)
    else:
        raise CommandError(
            f"There is no terminal to ask for the password; pass --password-file FILE, or set "
            f"{PASSWORD_VARIABLE}"
        )
    text = text.rstrip("\r\n")
    if not text:
        raise CommandError("The password is empty")
    return text
