"""Dialogues written by theme, by their names: `topics/create-v7`."""

from tools.compat_diff.dialogues import configs, fetching, producing, topics
from tools.compat_diff.steps import Dialogue

WRITTEN: dict[str, Dialogue] = {
    **topics.WRITTEN,
    **configs.WRITTEN,
    **producing.WRITTEN,
    **fetching.WRITTEN,
}
