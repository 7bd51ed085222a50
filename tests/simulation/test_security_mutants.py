"""Tests that the simulation of a cluster detects each disabled rule about rights.

Users, ACLs, roles and quotas are committed metadata, and each broker decides by what it has
applied. A mutant is a patch that disables one rule; a limited number of seeds must catch it, and
the seed that catches it must pass without it. All run with `Theme.SECURITY`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.handlers import authorization
from barnabas.handlers.cluster import envelope
from barnabas.handlers.shapes import Shapes
from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import (
    AclAdded,
    ScramCredentialChanged,
    SecurityRecord,
)
from barnabas.model.callers import CLIENT_LISTENER, Caller
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.envelopes import read_envelope
from barnabas.security.authorizer import Authorizer
from barnabas.security.client_quotas import ClientQuotas
from barnabas.sim.clients.security_operators import OPERATOR
from barnabas.sim.cluster_run import run_cluster
from barnabas.sim.scenario import Theme

SEEDS = 60
PASSING = 6
MORE_PASSING = 100

Patch = Callable[[pytest.MonkeyPatch], None]


def acls_not_loaded_from_snapshot(patch: pytest.MonkeyPatch) -> None:
    """A broker that loads a snapshot of the metadata keeps the ACLs that it had before."""
    patch.setattr(Authorizer, "_load", lambda *_: None)


def members_not_applied(patch: pytest.MonkeyPatch) -> None:
    """A change of a role does not change the rights of its members."""
    original = Authorizer._derive_roles

    def derive(self: Any) -> None:
        if not self._roles:
            original(self)

    patch.setattr(Authorizer, "_derive_roles", derive)


def decisions_remembered_after_changes(patch: pytest.MonkeyPatch) -> None:
    """An authorizer continues with the decisions from before a change."""
    patch.setattr(Authorizer, "_forget_decisions", lambda _: None)


def fast_path_ignores_changes(patch: pytest.MonkeyPatch) -> None:
    """Shapes stay when ACLs change: a client continues without the right."""
    patch.setattr(Shapes, "forget_all", lambda _: None)


def denied_requests_are_learnt(patch: pytest.MonkeyPatch) -> None:
    """The fast path learns a request that was denied."""
    original = authorization.note_denial

    def note_denial(node: Any, context: Any, *rest: Any) -> None:
        original(node, context, *rest)
        context.was_denied = False

    patch.setattr(authorization, "note_denial", note_denial)


def forwarded_requests_lose_their_caller(patch: pytest.MonkeyPatch) -> None:
    """The controller carries out what a broker forwards with all rights."""
    caller = Caller(OPERATOR, CLIENT_LISTENER, "")
    patch.setattr(envelope, "read_envelope", lambda request: (caller, read_envelope(request)[1]))


def quotas_not_loaded_from_snapshot(patch: pytest.MonkeyPatch) -> None:
    """A broker that loads a snapshot of the metadata keeps the quotas that it had before."""
    patch.setattr(ClientQuotas, "replace", lambda *_: None)


def snapshots_lack_acls(patch: pytest.MonkeyPatch) -> None:
    """ACLs are not in snapshots: brokers that load one have other ACLs than the others."""
    original = SecurityImage.snapshot

    def snapshot(self: SecurityImage) -> Iterator[SecurityRecord]:
        return (each for each in original(self) if not isinstance(each, AclAdded))

    patch.setattr(SecurityImage, "snapshot", snapshot)


def users_acknowledged_before_commit(patch: pytest.MonkeyPatch) -> None:
    """The controller acknowledges a new user before a majority has it."""
    original = Node.commit

    def commit(self: Any, changes: Any, now_ms: int) -> Pending[None]:
        committed = original(self, changes, now_ms)
        if not any(isinstance(each, ScramCredentialChanged) for each in changes):
            return committed
        committed.when_done(lambda _: None, lambda _: None)
        early: Pending[None] = Pending()
        early.complete(None)
        return early

    patch.setattr(Node, "commit", commit)


def clients_served_before_catching_up(patch: pytest.MonkeyPatch) -> None:
    """A broker serves clients as soon as it starts, with the ACLs that its disk has."""
    original = Node.start

    def start(self: Any, wall_ms: int) -> Pending[None]:
        original(self, wall_ms).when_done(lambda _: None)
        return Pending[None].of(None)

    patch.setattr(Node, "start", start)


QUICK: list[Patch] = [
    acls_not_loaded_from_snapshot,
    members_not_applied,
    decisions_remembered_after_changes,
    forwarded_requests_lose_their_caller,
    clients_served_before_catching_up,
]
"""Caught within a few seeds."""
MUTANTS: list[Patch] = [
    *QUICK,
    fast_path_ignores_changes,
    denied_requests_are_learnt,
    quotas_not_loaded_from_snapshot,
    snapshots_lack_acls,
    users_acknowledged_before_commit,
]


def problem(seed: int) -> str | None:
    """Return what is wrong with a run, if anything is."""
    return run_cluster(seed, theme=Theme.SECURITY).problem


@pytest.mark.parametrize("seed", range(PASSING))
def test_seed_passes(seed: int) -> None:
    assert problem(seed) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(PASSING, MORE_PASSING))
def test_more_seeds_pass(seed: int) -> None:
    assert problem(seed) is None


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(each, id=each.__name__, marks=[] if each in QUICK else [pytest.mark.slow])
        for each in MUTANTS
    ],
)
def test_mutant_is_caught(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        mutant(patch)
        caught = next((seed for seed in range(SEEDS) if problem(seed) is not None), None)
    assert caught is not None
    assert problem(caught) is None
