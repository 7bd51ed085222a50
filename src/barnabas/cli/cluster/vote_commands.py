"""`barnabas cluster promote` and `demote`: add and remove voters of the metadata quorum."""

from typing import Annotated

import typer

from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Properties
from barnabas.cli.common.output import say

PROMOTE_HELP = """Make a broker a voter of the metadata quorum.

It must run and follow the metadata log, as every broker does. Use an odd number of voters: four
survive no more failures than three.
"""
PROMOTE_EPILOG = "Example: barnabas cluster promote 4 --peer-listen 10.0.0.4:9192"
DEMOTE_HELP = """Remove a voter from the metadata quorum, running or not; it remains a broker.

The other voters must have a majority: of three voters of which one is lost, only the lost one can
be demoted.
"""
DEMOTE_EPILOG = "Example: barnabas cluster demote 3"

Number = Annotated[int, typer.Argument(metavar="ID", help="The node id.")]


def promote(
    node_id: Number,
    peer_listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Its address for other brokers."),
    ],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Make a broker a voter."""
    from barnabas.admin.inspection import open_wire
    from barnabas.admin.voter_changes import add_voter, voter

    with open_wire(bootstrap, properties) as wire:
        if voter(wire, node_id) is not None:
            raise CommandError(
                f"Node {node_id} is already a voter; if its disk was replaced, remove the "
                f"old vote first: `barnabas cluster demote {node_id}`"
            )
        add_voter(wire, node_id, peer_listen)
    say(f"Node {node_id} is a voter")


def demote(
    node_id: Number,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Remove a voter."""
    from barnabas.admin.inspection import open_wire
    from barnabas.admin.voter_changes import quorum, remove_voter, voter

    with open_wire(bootstrap, properties) as wire:
        found = voter(wire, node_id)
        if found is None:
            voters = quorum(wire).current_voters
            there = ", ".join(str(each.replica_id) for each in voters)
            raise CommandError(f"Node {node_id} has no vote; those of {there} count")
        remove_voter(wire, found)
    say(f"Node {node_id} is no longer a voter")
