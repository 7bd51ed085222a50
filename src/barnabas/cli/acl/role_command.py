"""`barnabas role`: add and remove members of roles. ACLs name a role as the principal Role:NAME."""

from typing import Annotated

import typer

from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

RoleArgument = Annotated[str, typer.Argument(metavar="ROLE", help="The name of the role.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check, and change nothing.")]


@app.command(epilog="Example: barnabas role add readers User:alice User:bob")
def add(
    role: RoleArgument,
    members: Annotated[list[str], typer.Argument(metavar="PRINCIPAL...", help="User:alice ...")],
    dry_run: DryRun = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Add principals to a role; the first member creates it."""
    from barnabas.admin.access.acl_admin import AclAdmin
    from barnabas.admin.access.acl_words import parse_principal
    from barnabas.admin.inspection import open_wire

    named = [parse_principal(member) for member in members]
    with open_wire(bootstrap, properties) as wire:
        AclAdmin(wire).add_members(role, named, dry_run=dry_run)
    _show(role, named, "added", as_json=as_json, dry_run=dry_run)


@app.command(epilog="Example: barnabas role remove readers User:bob")
def remove(
    role: RoleArgument,
    members: Annotated[
        list[str] | None, typer.Argument(metavar="[PRINCIPAL...]", help="Default: all members.")
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Remove principals from a role; a role without members is deleted."""
    from barnabas.admin.access.acl_admin import AclAdmin
    from barnabas.admin.access.acl_words import parse_principal
    from barnabas.admin.inspection import open_wire

    named = [parse_principal(member) for member in members or ()]
    with open_wire(bootstrap, properties) as wire:
        admin = AclAdmin(wire)
        present = admin.roles().get(role)
        if present is None:
            raise CommandError(f"There is no role {role}; `barnabas role list` lists all")
        admin.remove_members(role, named, dry_run=dry_run)
    gone = [member for member in present if member in named] if named else present
    _show(role, gone, "removed", as_json=as_json, dry_run=dry_run)


@app.command("list", epilog="Example: barnabas role list")
def list_roles(
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List roles and their members."""
    from barnabas.admin.access.acl_admin import AclAdmin
    from barnabas.admin.inspection import open_wire

    with open_wire(bootstrap, properties) as wire:
        found = AclAdmin(wire).roles()
    if as_json:
        print_json(found)
    elif found:
        print_table(("ROLE", "MEMBERS"), [(r, ", ".join(found[r])) for r in sorted(found)])
    else:
        say("No roles")


def _show(role: str, members: list[str], verb: str, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        print_json({"dry_run": dry_run, "role": role, verb: members})
        return
    where = "to" if verb == "added" else "from"
    names = ", ".join(members) or "no members"
    say(f"{'Would be' if dry_run else 'Was'} {verb} {where} role {role}: {names}")
