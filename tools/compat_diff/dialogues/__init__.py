"""Hand-written dialogues, grouped by theme and named like `topics/create-v7`."""

from tools.compat_diff.dialogues import (
    cluster,
    committing,
    configs,
    consumer_groups,
    fetching,
    groups,
    producing,
    security,
    share_fetching,
    share_groups,
    sharing,
    topics,
    transactions,
)
from tools.compat_diff.steps import Dialogue

WRITTEN: dict[str, Dialogue] = {
    **topics.WRITTEN,
    **configs.WRITTEN,
    **producing.WRITTEN,
    **fetching.WRITTEN,
    **groups.WRITTEN,
    **committing.WRITTEN,
    **consumer_groups.WRITTEN,
    **transactions.WRITTEN,
    **share_groups.WRITTEN,
    **share_fetching.WRITTEN,
    **sharing.WRITTEN,
    **cluster.WRITTEN,
    **security.WRITTEN,
}
