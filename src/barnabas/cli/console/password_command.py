"""`barnabas console password`: add a user to the console's password file, or change a password."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.output import say

HELP = """Add a user to a password file of the console, or change the password.

The file holds no password, only what scrypt makes of it. A console that runs takes it at the next
login.
"""
EPILOG = (
    "Example: barnabas console password alice --passwords users ; "
    "barnabas console --login password --passwords users"
)
PASSWORD_VARIABLE = "BARNABAS_USER_PASSWORD"  # noqa: S105 - the name of a variable


def password(
    user: Annotated[str, typer.Argument(metavar="USER", help="The user.")],
    passwords: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to change; without it the line is printed."),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"A file with the password; without it, {PASSWORD_VARIABLE} or a prompt.",
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="The user may not change the cluster.")
    ] = False,
) -> None:
    """Write a line into a password file."""
    with needs_extra("console"):
        from barnabas.console.login.password_file import new_user, put_user

    made = new_user(user, _password(user, password_file), read_only=read_only)
    if passwords is None:
        say(str(made))
        return
    put_user(passwords, made)
    role = "read-only user" if read_only else "user"
    say(f"{passwords} has the {role} {user}; start the console with --login password")


def _password(user: str, file: Path | None) -> str:
    """Return the password from a file, a variable or a prompt; never from an argument."""
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"--password-file {file}: {error}") from None
    elif PASSWORD_VARIABLE in os.environ:
        text = os.environ[PASSWORD_VARIABLE]
    elif sys.stdin.isatty():
        text = typer.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True)
    else:
        text = sys.stdin.readline()
    return text.rstrip("\r\n")
