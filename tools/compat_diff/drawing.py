"""Dialogues drawn from a seed."""

from tools.compat_diff.steps import Scene, Talk

DRAWN_STEPS = 25


def drawn(scene: Scene) -> Talk:
    """Nothing yet."""
    yield from ()
