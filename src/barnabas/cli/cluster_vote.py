"""`barnabas cluster promote` and `demote`: who votes on metadata, on any computer."""

from typing import Annotated

import typer

from barnabas.cli.connection import DEFAULT_BOOTSTRAP, Bootstrap, Properties
from barnabas.cli.failure import CommandError
from barnabas.cli.output import say

PROMOTE_HELP = """Let a broker vote on metadata.

It must run, and follow the metadata log, as every broker does. An odd number of voters is
best: four stand no more failures than three.
"""
PROMOTE_EPILOG = "Example: barnabas cluster promote 4 --peer-listen 10.0.0.4:9192"
DEMOTE_HELP = """Take a voter's vote, whether it runs or not; as a broker it goes on.

The rest of the voters must be able to decide: of three of which one is lost, it is the lost one
that can be demoted.
"""
DEMOTE_EPILOG = "Example: barnabas cluster demote 3"

Number = Annotated[int, typer.Argument(metavar="ID", help="The node's number.")]


def promote(
    node_id: Number,
    peer_listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where it listens for other brokers."),
    ],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Let a broker vote on metadata."""
    from barnabas.cli.inspection import open_wire
    from barnabas.cli.voting import add_voter, voter

    with open_wire(bootstrap, properties) as wire:
        if voter(wire, node_id) is not None:
            raise CommandError(
                f"Node {node_id} votes already; where its disk was lost and made anew, take the "
                f"old vote first: `barnabas cluster demote {node_id}`"
            )
        add_voter(wire, node_id, peer_listen)
    say(f"Node {node_id} votes")


def demote(
    node_id: Number,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Take a voter's vote."""
    from barnabas.cli.inspection import open_wire
    from barnabas.cli.voting import quorum, remove_voter, voter

    with open_wire(bootstrap, properties) as wire:
        found = voter(wire, node_id)
        if found is None:
            voters = quorum(wire).current_voters
            there = ", ".join(str(each.replica_id) for each in voters)
            raise CommandError(f"Node {node_id} has no vote; those of {there} count")
        remove_voter(wire, found)
    say(f"Node {node_id} votes no more")
