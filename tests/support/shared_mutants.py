"""Mutants that the simulations of a single broker and of a cluster share."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas.storage.producers import ProducerStates
from barnabas.transactions import transitions


def epoch_stays_at_end(patch: pytest.MonkeyPatch) -> None:
    """A transaction of version 2 ends without a larger epoch.

    Its markers and the next transaction have the epoch of late requests (KIP-890).
    """
    original = transitions._ended

    def ended(before: Any, *rest: Any) -> Any:
        return replace(original(before, *rest), producer_epoch=before.producer_epoch)

    patch.setattr(transitions, "_ended", ended)
    patch.setattr(ProducerStates, "check_marker", lambda *_: None)


def retry_answers_newest_offset(patch: pytest.MonkeyPatch) -> None:
    """A retried batch is answered with the offset of a newer batch, also after a failover."""
    original = ProducerStates.check

    def check(self: Any, header: Any) -> Any:
        found = original(self, header)
        return found and self.by_id[header.producer_id].batches[-1]

    patch.setattr(ProducerStates, "check", check)
