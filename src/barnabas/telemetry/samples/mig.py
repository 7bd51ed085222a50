"""Identifies MIG instances: the card, the instance, and its share of the card.

An exporter reports each instance under the UUID of its card, with labels that name the instance and
its profile (`GPU_I_ID="7"`, `GPU_I_PROFILE="1g.10gb"`). Everywhere after the topic, `gpu_id` is the
card and `instance` the instance; a row without an instance is about the card as a whole.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

INSTANCE_LABELS = ("GPU_I_ID", "gpu_i_id", "mig_instance", "mig_id", "mig")
PROFILE_LABELS = ("GPU_I_PROFILE", "gpu_i_profile", "mig_profile", "mig")
LABELS = frozenset(INSTANCE_LABELS + PROFILE_LABELS)

_PROFILE = re.compile(r"(?:\d+c\.)?(\d+)g(?:\.\d+gb)?(?:\+\w+)*", re.IGNORECASE)
"""`1g.10gb`, with the compute instance before it or the attributes after it if there are any."""
_OLD_UUID = re.compile(r"MIG-(GPU-[^/]+)/(\d+)/\d+")
"""How drivers before 470 name an instance: its card, the GPU instance, the compute instance."""


class Place(NamedTuple):
    """The card of a reading, and the instance on it."""

    gpu_id: str
    instance: str | None = None
    profile: str | None = None


def place(gpu_id: str, labels: Mapping[str, object]) -> Place:
    """Return the card and the instance of an id and its labels.

    Collectors before 0.2 sent `UUID/INSTANCE` as the id of an instance.
    """
    if gpu_id.startswith("MIG-GPU-") and (old := _OLD_UUID.fullmatch(gpu_id)):
        return Place(old[1], old[2], _profile(labels))
    if LABELS.isdisjoint(labels):
        return Place(gpu_id)
    instance = _instance(labels)
    if instance is None:
        return Place(gpu_id)
    return Place(gpu_id.removesuffix(f"/{instance}") or gpu_id, instance, _profile(labels))


def slices(profile: str | None) -> int | None:
    """Return how many compute slices a profile has; None if it does not say."""
    found = _PROFILE.search(profile or "")
    return int(found[1]) if found else None


def slices_of_card(model: str | None) -> int:
    """Return how many compute slices a card has: four on an A30, seven on all others."""
    return 4 if model and re.search(r"\bA30\b", model) else 7


def _instance(labels: Mapping[str, object]) -> str | None:
    for name in INSTANCE_LABELS:
        text = labels.get(name)
        if isinstance(text, str) and text and (name != "mig" or text.isdigit()):
            return text
    return None


def _profile(labels: Mapping[str, object]) -> str | None:
    for name in PROFILE_LABELS:
        text = labels.get(name)
        if isinstance(text, str) and text and (name != "mig" or _PROFILE.fullmatch(text)):
            return text
    return None
