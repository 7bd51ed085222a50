"""`barnabas acl`: create, list and remove ACLs, and explain decisions."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.admin.access.acl_admin import Rules
    from barnabas.metadata.acl_filter import AclFilter
    from barnabas.metadata.security_records import AclAdded
    from barnabas.model.permissions import Right
    from barnabas.security.authorizer import Verdict

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

DENIED = 1
"""The exit code of `acl test` if the answer is no."""

PrincipalArgument = Annotated[
    str, typer.Argument(metavar="PRINCIPAL", help="User:alice, Role:readers, or User:* for all.")
]
OperationsArgument = Annotated[
    str, typer.Argument(metavar="OPERATION", help="read, write, describe, all, ...")
]
ResourceArgument = Annotated[
    str, typer.Argument(metavar="RESOURCE", help="topic:NAME, group:NAME, txn:NAME or cluster.")
]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Only from this address.")]
Prefix = Annotated[bool, typer.Option("--prefix", help="For all resources whose names begin so.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
OptionalPrincipal = Annotated[
    str | None, typer.Option("--principal", metavar="PRINCIPAL", help="Only of this principal.")
]
OptionalResource = Annotated[
    str | None, typer.Option("--resource", metavar="RESOURCE", help="Only of this resource.")
]
Match = Annotated[
    bool,
    typer.Option("--match", help="All that the resource is subject to: prefixes and * as well."),
]


@app.command(epilog="Example: barnabas acl add User:alice read,describe topic:orders")
def add(  # noqa: PLR0913 - one parameter an option
    principal: PrincipalArgument,
    operations: OperationsArgument,
    resource: ResourceArgument,
    *,
    prefix: Prefix = False,
    deny: Annotated[bool, typer.Option("--deny", help="Deny instead of allow.")] = False,
    host: Host = "*",
    dry_run: DryRun = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Allow or deny a principal an operation."""
    from barnabas.admin.access.acl_admin import AclAdmin
    from barnabas.admin.access.acl_words import parse_operation, parse_principal, parse_resource
    from barnabas.admin.inspection import open_wire
    from barnabas.metadata.security_records import AclAdded
    from barnabas.model.permissions import PatternType, PermissionType

    kind, name = parse_resource(resource)
    acls = [
        AclAdded(
            acl_id="",
            resource_type=kind,
            pattern_type=PatternType.PREFIXED if prefix else PatternType.LITERAL,
            resource_name=name,
            principal=parse_principal(principal),
            host=host,
            operation=parse_operation(word),
            permission_type=PermissionType.DENY if deny else PermissionType.ALLOW,
        )
        for word in operations.split(",")
    ]
    if not dry_run:
        with open_wire(bootstrap, properties) as wire:
            AclAdmin(wire).create(acls)
    _show_changes(acls, "added", as_json=as_json, dry_run=dry_run)


@app.command("list", epilog="Example: barnabas acl list --resource topic:orders --match")
def list_acls(
    principal: OptionalPrincipal = None,
    resource: OptionalResource = None,
    match: Match = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List ACLs."""
    from barnabas.admin.access.acl_admin import AclAdmin
    from barnabas.admin.access.acl_words import as_json as json_of
    from barnabas.admin.inspection import open_wire

    with open_wire(bootstrap, properties) as wire:
        found = AclAdmin(wire).acls(_filter(principal, resource, match=match))
    if as_json:
        print_json([json_of(acl) for acl in found])
    else:
        _show_table(found)


@app.command(epilog="Example: barnabas acl remove --principal User:alice --resource topic:orders")
def remove(  # noqa: PLR0913 - one parameter an option
    principal: OptionalPrincipal = None,
    resource: OptionalResource = None,
    *,
    prefix: Annotated[bool, typer.Option("--prefix", help="Only ACLs for prefixes.")] = False,
    operation: Annotated[
        str | None, typer.Option("--operation", help="Only for this operation.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Only for this address.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Remove ACLs."""
    from dataclasses import replace

    from barnabas.admin.access.acl_admin import AclAdmin
    from barnabas.admin.access.acl_words import parse_operation
    from barnabas.admin.inspection import open_wire
    from barnabas.model.permissions import Operation, PatternType

    if principal is None and resource is None:
        raise CommandError("Say which ACLs: give --principal, --resource, or both")
    wanted = _filter(principal, resource, match=False)
    wanted = replace(
        wanted,
        host=host,
        operation=Operation.ANY if operation is None else parse_operation(operation),
        pattern_type=PatternType.PREFIXED if prefix else wanted.pattern_type,
    )
    with open_wire(bootstrap, properties) as wire:
        admin = AclAdmin(wire)
        found = admin.acls(wanted)
        if found and not dry_run:
            question = f"Remove {len(found)} ACLs?"
            if not yes and not typer.confirm(question, err=True):
                return
            admin.delete(wanted)
    _show_changes(found, "removed", as_json=as_json, dry_run=dry_run)


@app.command("test", epilog="Example: barnabas acl test User:alice read topic:orders && echo yes")
def check(
    principal: PrincipalArgument,
    operation: OperationsArgument,
    resource: ResourceArgument,
    host: Host = "127.0.0.1",
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Test whether a principal may do something; the exit code is 1 if not."""
    verdict = _explain(principal, operation, resource, host, bootstrap, properties)[0]
    if as_json:
        print_json({"allowed": verdict.allowed, "reason": verdict.why.value})
    else:
        say("allowed" if verdict.allowed else "denied")
    sys.exit(0 if verdict.allowed else DENIED)


@app.command(epilog="Example: barnabas acl why User:alice read topic:orders --host 10.0.0.7")
def why(
    principal: PrincipalArgument,
    operation: OperationsArgument,
    resource: ResourceArgument,
    host: Host = "127.0.0.1",
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Explain why something is allowed or denied: the rule that decides."""
    from barnabas.admin.access.acl_words import as_json as json_of
    from barnabas.admin.access.acl_words import sentence

    verdict, rules = _explain(principal, operation, resource, host, bootstrap, properties)
    roles = rules.roles_of(principal)
    if as_json:
        acl = None if verdict.acl is None else json_of(verdict.acl)
        facts = {"allowed": verdict.allowed, "reason": verdict.why.value}
        print_json({**facts, "acl": acl, "roles": list(roles)})
        return
    word = "allowed" if verdict.allowed else "denied"
    say(f"{principal} is {word} to {operation} {resource} from {host}: {verdict.why.value}")
    if verdict.acl is not None:
        say(f"  {sentence(verdict.acl)}")
    if roles:
        say(f"  its roles: {', '.join(roles)}")
    if not verdict.allowed and verdict.acl is None:
        say(f"  to allow it: barnabas acl add {principal} {operation} {resource}")


@app.command(epilog="Example: barnabas acl who read topic:orders")
def who(
    operation: OperationsArgument,
    resource: ResourceArgument,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List the principals that may do something, and the rules."""
    from barnabas.admin.access.acl_words import sentence

    wanted, name = _wanted(operation, resource)
    found = _rules(bootstrap, properties).who(wanted, name)
    rows = [
        (
            each.principal,
            each.host,
            "yes" if each.verdict.allowed else "no",
            each.verdict.why.value if each.verdict.acl is None else sentence(each.verdict.acl),
        )
        for each in found
    ]
    titles = ("principal", "host", "allowed", "why")
    if as_json:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
    elif rows:
        print_table([title.upper() for title in titles], rows)
    else:
        say(f"No principal may {operation} {resource}")


def _wanted(operation: str, resource: str) -> "tuple[Right, str]":
    from barnabas.admin.access.acl_words import parse_operation, parse_resource
    from barnabas.model.permissions import right

    kind, name = parse_resource(resource)
    return right(parse_operation(operation), kind), name


def _rules(bootstrap: str, properties: list[str] | None) -> "Rules":
    from barnabas.admin.access.acl_admin import AclAdmin
    from barnabas.admin.inspection import open_wire

    with open_wire(bootstrap, properties) as wire:
        return AclAdmin(wire).rules()


def _explain(
    principal: str,
    operation: str,
    resource: str,
    host: str,
    bootstrap: str,
    properties: list[str] | None,
) -> "tuple[Verdict, Rules]":
    from barnabas.admin.access.acl_words import parse_principal

    wanted, name = _wanted(operation, resource)
    rules = _rules(bootstrap, properties)
    return rules.explain(parse_principal(principal), wanted, name, host), rules


def _filter(principal: str | None, resource: str | None, *, match: bool) -> "AclFilter":
    from barnabas.admin.access.acl_words import parse_resource
    from barnabas.metadata.acl_filter import AclFilter
    from barnabas.model.permissions import PatternType, ResourceType

    if resource is None:
        if match:
            raise CommandError("--match needs --resource")
        return AclFilter(resource_type=ResourceType.ANY, principal=principal)
    kind, name = parse_resource(resource)
    pattern = PatternType.MATCH if match else PatternType.ANY
    return AclFilter(
        resource_type=kind, resource_name=name, pattern_type=pattern, principal=principal
    )


def _show_table(acls: "Sequence[AclAdded]") -> None:
    from barnabas.admin.access.acl_words import shown_operation, shown_permission, shown_resource

    if not acls:
        say("No ACLs")
        return
    rows = [
        (shown_resource(acl), acl.principal, shown_permission(acl), shown_operation(acl), acl.host)
        for acl in acls
    ]
    print_table(("RESOURCE", "PRINCIPAL", "PERMISSION", "OPERATION", "HOST"), rows)


def _show_changes(acls: "Sequence[AclAdded]", verb: str, *, as_json: bool, dry_run: bool) -> None:
    from barnabas.admin.access.acl_words import as_json as json_of
    from barnabas.admin.access.acl_words import sentence

    if as_json:
        print_json({"dry_run": dry_run, verb: [json_of(acl) for acl in acls]})
        return
    if not acls:
        say("No ACLs match")
    for acl in acls:
        say(f"{'Would be' if dry_run else 'Was'} {verb}: {sentence(acl)}")
